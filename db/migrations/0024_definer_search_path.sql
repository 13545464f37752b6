-- A function that runs with its owner's rights must not resolve names to its caller's relations or types. Postgres searches
-- the session's temporary schema first unless the search path lists it: a caller who may create temporary tables could
-- shadow a table, and the shadow's trigger would run as the owner. Listed last, it shadows nothing.
--
-- The second safeguard, that no runtime login may create temporary tables, is not part of the schema: see db/migrator.ts.

alter function tagged_jobs(uuid, text) set search_path = pg_catalog, public, pg_temp;
alter function newest_event_at() set search_path = pg_catalog, public, pg_temp;
alter function queue_snapshot(boolean) set search_path = pg_catalog, public, pg_temp;
alter function queue_ahead(uuid, uuid, integer) set search_path = pg_catalog, public, pg_temp;
alter function count_slow_jobs() set search_path = pg_catalog, public, pg_temp;
alter function callbacks_of_job(uuid, uuid) set search_path = pg_catalog, public, pg_temp;
alter function lease_gauges() set search_path = pg_catalog, public, pg_temp;
