create or replace function error_fingerprint(error jsonb) returns text
language sql immutable parallel safe
-- Errors that differ only in ids, numbers, addresses or quoted values have the same fingerprint. A three-digit number
-- at the start of the message is a status code and distinguishes them.
return md5(
  coalesce(error ->> 'code', '') || ' ' || coalesce(substring(error ->> 'message' from '^[0-9]{3}\M'), '') || ' ' ||
  regexp_replace(
    regexp_replace(left(coalesce(error ->> 'message', ''), 400), '"[^"]*"|''[^'']*''|`[^`]*`', '?', 'g'),
    '[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|[0-9a-f]{12,}|[0-9]+', '#', 'gi'
  )
);
