-- What `npm run admin -- database-login` makes in production, with passwords of a machine that nobody else reaches. The groups
-- are made here already: migrations find them.
create role smartqueue_functions nologin;
create role smartqueue_workers nologin;
create role smartqueue_functions_login login password 'local-only' in role smartqueue_functions;
create role smartqueue_workers_login login password 'local-only' in role smartqueue_workers;
