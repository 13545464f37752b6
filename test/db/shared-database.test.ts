import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { withLogin } from '../../worker-runtime/database-login.ts'
import { migrateDatabase } from '../../worker-runtime/migrate.ts'
import { createTestDatabase, SHOW_ALL_ROWS, type TestDatabase } from '../support/database.ts'
import { claim, completed, end, newJob, seedJobs, seedTenant } from '../support/jobs.ts'

// An application that has tables with our names, and Rails' table of migrations.
const APPLICATION = `
  create table public.users (id bigint primary key, email text);
  create table public.jobs (id bigint primary key, title text);
  create table public.schema_migrations (version character varying primary key);
  insert into public.users values (1, 'ada@example.com');
  insert into public.jobs values (1, 'engineer');
  insert into public.schema_migrations values ('20260101000000')`

const owner = { name: `owner_${randomBytes(4).toString('hex')}`, password: 'test' }
let database: TestDatabase
let databaseName: string
let ownerUrl: string
before(async () => {
  database = await createTestDatabase({ empty: true })
  databaseName = new URL(database.url).pathname.slice(1)
  ownerUrl = withLogin(database.url, owner)
  await database.sql(APPLICATION)
  await database.sql(`create role ${owner.name} login password '${owner.password}'`)
})
after(() => database.drop())

test('a login that may not create the schema is told how to get it', async () => {
  await assert.rejects(migrateDatabase(ownerUrl), {
    message:
      `The login ${owner.name} may not create the schema smartqueue. ` +
      `Run as the owner of the database: grant create on database ${databaseName} to ${owner.name}`,
  })
  await database.sql('create schema smartqueue')
  await assert.rejects(migrateDatabase(ownerUrl), {
    message: new RegExp(`Run as a superuser: alter schema smartqueue owner to ${owner.name}$`),
  })
  await database.sql('drop schema smartqueue')
})

test('SmartQueue shares a database with an application that has users and jobs of its own', async () => {
  await database.sql(`grant create on database ${databaseName} to ${owner.name}`)
  await migrateDatabase(ownerUrl)
  await database.sql(SHOW_ALL_ROWS)

  const tenant = await seedTenant(database.run)
  await seedJobs(database.run, tenant, [newJob()])
  const [job] = await claim(database.run)
  assert.ok(job)
  await end(database.run, completed(job))
  assert.deepEqual(await database.sql('select id, status from smartqueue.job_overview'), [
    { id: job.job_id, status: 'completed' },
  ])
})

test('the application keeps its tables, and SmartQueue owns nothing outside its schema', async () => {
  assert.deepEqual(
    await database.sql(`
      select u.email, j.title, m.version
      from public.users u
      cross join public.jobs j
      cross join public.schema_migrations m`),
    [{ email: 'ada@example.com', title: 'engineer', version: '20260101000000' }],
  )
  assert.deepEqual(
    await database.sql(
      `select distinct n.nspname as schema
       from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
       where pg_get_userbyid(c.relowner) = $1
         and c.relkind in ('r', 'v', 'S')`,
      [owner.name],
    ),
    [{ schema: 'smartqueue' }],
  )
  assert.deepEqual(
    await database
      .sql(`select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`)
      .then((rows) => rows.map(({ relname }) => relname).sort()),
    ['jobs', 'schema_migrations', 'users'],
  )
})
