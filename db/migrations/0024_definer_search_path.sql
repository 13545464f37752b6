-- A function that runs with its owner's rights must not find a relation or type of its caller's. Postgres looks into the
-- session's temporary schema first unless the search path lists it: whoever may create temporary tables could put one in the
-- place of a table, and its trigger would run as the owner. Listed last, it hides nothing.
--
-- The other half, that no runtime login may create temporary tables, is no part of the schema: see db/migrator.ts.

alter function tagged_jobs(uuid, text) set search_path = pg_catalog, public, pg_temp;
alter function newest_event_at() set search_path = pg_catalog, public, pg_temp;
alter function queue_snapshot(boolean) set search_path = pg_catalog, public, pg_temp;
alter function queue_ahead(uuid, uuid, integer) set search_path = pg_catalog, public, pg_temp;
alter function count_slow_jobs() set search_path = pg_catalog, public, pg_temp;
alter function callbacks_of_job(uuid, uuid) set search_path = pg_catalog, public, pg_temp;
alter function lease_gauges() set search_path = pg_catalog, public, pg_temp;
