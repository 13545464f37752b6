-- Exact rate limits: the conflict locks the row of the subject, and the update sees its newest version, so concurrent
-- requests can never exceed the limit.

create or replace function network_of(address inet) returns text
language sql immutable parallel safe
-- The network for which rate limits are counted. A household has at least an IPv6 /64, so all addresses in it count as
-- one. An IPv4-mapped IPv6 address counts as its IPv4 address.
return case
  when family(address) = 4 then host(address)
  when address <<= '::ffff:0:0/96'::inet then host('0.0.0.0'::inet + (address - '::ffff:0:0'::inet))
  else network(set_masklen(address, 64))::text
end;

create or replace function hit_rate_limit(p_action text, p_ip inet, p_limit integer, p_seconds integer)
returns table (admitted boolean, remaining integer, resets_in integer)
language sql security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- Adds a hit of a network to its sliding log if there is room.
begin atomic
  insert into rate_limits as r (action, subject, hits, admitted, last_hit)
  values (p_action, coalesce(network_of(p_ip), 'unknown'), array[clock_timestamp()], true, clock_timestamp())
  on conflict (action, subject) do update
  set
    (hits, admitted) = (
      select
        case
          when count(*) < p_limit then coalesce(array_agg(hit order by hit), '{}') || clock_timestamp()
          else array_agg(hit order by hit)
        end,
        count(*) < p_limit
      from unnest(r.hits) as hit
      where hit > clock_timestamp() - p_seconds * interval '1 second'
    ),
    last_hit = clock_timestamp()
  returning
    r.admitted, p_limit - cardinality(r.hits),
    greatest(1, ceil(extract(epoch from r.hits[1] + p_seconds * interval '1 second' - clock_timestamp())))::integer;
end;

grant execute on function hit_rate_limit to smartqueue_functions;
