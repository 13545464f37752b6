create or replace function network_of(address inet) returns text
language sql immutable parallel safe
-- A household has at least a /64 of IPv6, so that its addresses are one. An IPv4 address in IPv6 clothes is IPv4.
return case
  when family(address) = 4 then host(address)
  when address <<= '::ffff:0:0/96'::inet then host('0.0.0.0'::inet + (address - '::ffff:0:0'::inet))
  else network(set_masklen(address, 64))::text
end;

grant execute on function network_of to smartqueue_functions, smartqueue_workers;
