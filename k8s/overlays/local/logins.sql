-- Run once by the superuser when the database is created. The passwords are for a machine that nobody else can reach.

-- Owns the database and migrates it. Not a superuser, but it may create logins.
create role smartqueue_owner login password 'local-only' createrole;
alter database smartqueue owner to smartqueue_owner;

-- In production `npm run admin -- database-login` creates these. Here, too, the owner creates the roles, so that it may
-- change them; migrations find the groups.
set role smartqueue_owner;
create role smartqueue_functions nologin;
create role smartqueue_workers nologin;
create role smartqueue_functions_login login password 'local-only' in role smartqueue_functions;
create role smartqueue_workers_login login password 'local-only' in role smartqueue_workers;
