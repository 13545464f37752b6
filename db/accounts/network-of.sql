create or replace function network_of(address inet) returns text
language sql immutable parallel safe
-- The network that rate limits count by. A household has at least a /64 of IPv6, so all its addresses count as one. An
-- IPv4-mapped IPv6 address counts as its IPv4 address.
return case
  when family(address) = 4 then host(address)
  when address <<= '::ffff:0:0/96'::inet then host('0.0.0.0'::inet + (address - '::ffff:0:0'::inet))
  else network(set_masklen(address, 64))::text
end;

grant execute on function network_of to smartqueue_functions, smartqueue_workers;
