import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { closeOrg, settleDeletion } from '../support/deletion.ts'
import { lead, newJob, seedJobs, seedTenant } from '../support/jobs.ts'

type Definer = { name: string; call: string; settings: string[]; callers: string[] }
type Relation = { name: string; columns: string; nulls: string }

const LOGINS = ['functions', 'workers'] as const

let database: TestDatabase
let definers: Definer[]
let relations: Relation[]
before(async () => {
  database = await createTestDatabase()
  definers = await database.sql<Definer>(`
    select
      p.oid::regprocedure::text as name,
      format(
        'select * from smartqueue.%I(%s)',
        p.proname,
        (select string_agg(format('null::%s', format_type(type, null)), ', ' order by n)
         from unnest(p.proargtypes) with ordinality as arguments (type, n))
      ) as call,
      coalesce(p.proconfig, '{}') as settings,
      array(
        select login
        from unnest(array['functions', 'workers']) as login
        where has_function_privilege('test_' || login, p.oid, 'execute')
      ) as callers
    from pg_proc p
    where p.prosecdef
      and p.pronamespace = 'smartqueue'::regnamespace
    order by 1`)
  relations = await database.sql<Relation>(`
    select
      c.relname as name,
      string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum) as columns,
      string_agg(format('null::%s as %I', format_type(a.atttypid, a.atttypmod), a.attname), ', ' order by a.attnum) as nulls
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'smartqueue'::regnamespace
      and c.relkind in ('r', 'v')
    group by c.relname
    order by c.relname`)
})
after(() => database.drop())

test('every security definer function searches the temporary schema last', () => {
  assert.ok(definers.length >= 7, 'the catalog was read')
  for (const { name, settings } of definers) {
    assert.ok(settings.includes('search_path=pg_catalog, smartqueue, pg_temp'), name)
  }
})

/** Others are only called by these, whose search path they inherit. To pin it once more takes 2 to 3 µs a call. */
test('every plpgsql function that a login may call finds its tables whatever the search path', async () => {
  assert.deepEqual(
    await database.sql(`
      select p.oid::regprocedure::text as name
      from pg_proc p
      join pg_language l on l.oid = p.prolang
      where p.pronamespace = 'smartqueue'::regnamespace
        and l.lanname = 'plpgsql'
        and exists (
          select from unnest(array['functions', 'workers']) as login
          where has_function_privilege('test_' || login, p.oid, 'execute')
        )
        and 'search_path=pg_catalog, smartqueue, pg_temp' <> all (coalesce(p.proconfig, '{}'))`),
    [],
  )
})

test('no runtime login may create temporary tables', async () => {
  for (const login of LOGINS) {
    await withClient(asLogin(database.url, login), (client) =>
      assert.rejects(client.query('create temporary table queue_snapshots (only_row boolean)'), {
        code: '42501',
      }),
    )
  }
})

/** Triggers detect writes, and views detect reads. */
const SHADOWS: Record<string, (relation: Relation) => string> = {
  'tables with triggers': ({ name, columns }) => `
    create temporary table ${name} (${columns});
    create trigger trap before insert or update or delete on ${name} execute function pg_temp.tell_write()`,
  'views that call a function': ({ name, nulls }) =>
    `create temporary view ${name} as select ${nulls} where pg_temp.tell_read('${name}')`,
}

const TRAPS = `
  set search_path = smartqueue;
  create function pg_temp.tell_write() returns trigger language plpgsql as
    $$ begin raise exception 'wrote to the shadow of % as %', tg_relid::regclass, current_user; end $$;
  create function pg_temp.tell_read(relation text) returns boolean language plpgsql as
    $$ begin raise exception 'read the shadow of % as %', relation, current_user; end $$`

test('a removal with shadow tables present removes rows from the real tables', async () => {
  const { pathname } = new URL(database.url)
  const tenant = await seedTenant(database.run)
  await seedJobs(database.run, tenant, [newJob(), newJob()])
  await closeOrg(database, tenant)
  await settleDeletion(database, tenant)
  const term = await lead(database.run)
  await database.sql(`grant temporary on database ${pathname.slice(1)} to test_workers`)
  await withClient(asLogin(database.url, 'workers'), async (client) => {
    await client.query(
      [TRAPS, ...relations.map((relation) => SHADOWS['tables with triggers']?.(relation))].join(';'),
    )
    const { rows } = await client.query('select finished from smartqueue.remove_deleted_org($1, 1000)', [
      term,
    ])
    assert.deepEqual(rows, [{ finished: true }])
  })
  await database.sql(`revoke temporary on database ${pathname.slice(1)} from test_workers`)
  assert.deepEqual(await database.sql('select from smartqueue.orgs where id = $1', [tenant.orgId]), [])
})

for (const [kind, shadow] of Object.entries(SHADOWS)) {
  test(`even with temporary tables allowed, definer functions ignore ${kind} that shadow ours`, async () => {
    const { pathname } = new URL(database.url)
    for (const login of LOGINS) {
      await database.sql(`grant temporary on database ${pathname.slice(1)} to test_${login}`)
      await withClient(asLogin(database.url, login), async (client) => {
        await client.query([TRAPS, ...relations.map(shadow)].join(';'))
        for (const { name, call, callers } of definers) {
          if (!callers.includes(login)) continue
          // A snapshot less than a second old would be returned unchanged.
          await database.sql(`update smartqueue.queue_snapshots set taken_at = 'epoch'`)
          // Some refuse nulls. A trap says that it is one.
          const answer = await client.query(call).catch((error: Error) => error.message)
          assert.doesNotMatch(String(answer), /shadow/, `${name} as ${login}`)
        }
      })
      await database.sql(`revoke temporary on database ${pathname.slice(1)} from test_${login}`)
    }
  })
}
