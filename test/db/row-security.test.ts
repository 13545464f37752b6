import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { FUNCTIONS_ROLE, findRowSecurityFault, WORKERS_ROLE } from '../../db/queries/row-level-security.ts'
import { findJobs } from '../../db/queue/find-jobs.ts'
import { ensureLogin, withLogin } from '../../worker-runtime/database-login.ts'
import { migrateDatabase, withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { fillTables, tablesWithOrg } from '../support/every-table.ts'
import { jobInState } from '../support/job-in-state.ts'
import { seedTenant, type Tenant } from '../support/jobs.ts'
import { enterAs } from '../support/sessions.ts'

let database: TestDatabase
let ada: Tenant
let bob: Tenant
before(async () => {
  database = await createTestDatabase()
  ada = await seedTenant(database.run, 'ada')
  bob = await seedTenant(database.run, 'bob')
  for (const tenant of [ada, bob]) await fillTables(database, tenant)
})
after(() => database.drop())

/** Runs work in a transaction of the functions' own role that has entered an organisation, and undoes it. */
const inScope = async <T>(tenant: Tenant | undefined, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  withClient(asLogin(database.url, 'functions'), async (client) => {
    await client.query('begin')
    if (tenant) {
      await enterAs(client, tenant)
    }
    try {
      return await work(client)
    } finally {
      await client.query('rollback')
    }
  })

test('in every table the functions see the rows of the organisation that they entered, and no others', async () => {
  const tables = await tablesWithOrg(database)
  assert.ok(tables.length >= 20, tables.join())
  for (const table of tables) {
    const all = await database.sql(`select distinct org_id from smartqueue.${table} where org_id is not null`)
    assert.ok(all.length >= 2, `${table} has rows of both organisations`)
    await inScope(ada, async (client) => {
      const { rows } = await client.query(
        `select distinct org_id from smartqueue.${table} where org_id is not null`,
      )
      assert.deepEqual(rows, [{ org_id: ada.orgId }], table)
    })
  }
})

test('without having entered they see nothing at all', async () => {
  for (const table of [
    ...(await tablesWithOrg(database)),
    ...['orgs', 'users', 'leases', 'job_overview', 'held_jobs'],
  ]) {
    const where = table === 'quotas' ? 'where org_id is not null' : ''
    await inScope(undefined, async (client) => {
      assert.equal((await client.query(`select from smartqueue.${table} ${where}`)).rowCount, 0, table)
    })
  }
})

test('the functions see a lease only if it holds a job of an organisation that they entered', async () => {
  const held = await jobInState(database.run, bob, 'running', { type: 'held' })
  const seenBy = (tenant: Tenant) =>
    inScope(tenant, (client) =>
      client.query('select from smartqueue.leases where $1 = any (job_ids)', [held]),
    )
  assert.equal((await seenBy(bob)).rowCount, 1)
  assert.equal((await seenBy(ada)).rowCount, 0)
})

test('the tables of the queue are written by its functions only', async () => {
  const rights = await database.sql(`
    select distinct grantee, table_name, lower(privilege_type) as privilege
    from information_schema.role_table_grants
    where grantee in ('smartqueue_functions', 'smartqueue_workers')
      and table_schema = 'smartqueue'
      and table_name in (
        'jobs', 'waiting_jobs', 'blocked_jobs', 'ready_jobs', 'leases', 'finished_jobs', 'attempts', 'reservations',
        'job_event_groups'
      )
      and privilege_type <> 'SELECT'
    order by 1, 2, 3`)
  assert.deepEqual(
    rights,
    // Retention.
    ['attempts', 'finished_jobs', 'job_event_groups', 'jobs'].map((table_name) => ({
      grantee: 'smartqueue_workers',
      table_name,
      privilege: 'delete',
    })),
  )
})

test('a webhook source opens its organisation to whoever has its secret and its version', async () => {
  const [mine] = await database.sql<{ id: string; secret: string }>(
    'select id, secret from smartqueue.webhook_sources where org_id = $1',
    [ada.orgId],
  )
  const enter = (client: pg.Client, version: number, secret = mine?.secret) =>
    client.query('select smartqueue.enter_with_source($1, $2, $3, null, null)', [mine?.id, version, secret])
  const seen = async (client: pg.Client, table: string) =>
    (await client.query(`select org_id from smartqueue.${table}`)).rows.map(({ org_id }) => org_id)
  await inScope(undefined, async (client) => {
    await enter(client, 1)
    assert.deepEqual([...new Set(await seen(client, 'webhook_deliveries'))], [ada.orgId])
    assert.deepEqual([...new Set(await seen(client, 'jobs'))], [ada.orgId])
  })
  for (const [version, secret] of [[2], [1, 'wrong']] as const) {
    await inScope(bob, (client) => assert.rejects(enter(client, version, secret), { code: 'SQ404' }))
  }
})

test('a call with valid credentials reads its own organisation and opens nothing for later statements', async () => {
  const call = (client: pg.Client, tenant: Tenant, orgId: string | null, proof: object = {}) =>
    client.query(`select next_id from smartqueue.list_jobs($1, '{}', $2, $3, 10, $4::jsonb)`, [
      orgId,
      FIRST_ID,
      LAST_ID,
      JSON.stringify({ ...proofOf(tenant), ...proof }),
    ])
  await withClient(asLogin(database.url, 'functions'), async (client) => {
    assert.ok((await call(client, ada, ada.orgId)).rowCount)
    assert.equal((await client.query('select from smartqueue.jobs')).rowCount, 0)
    const refusals: [string | null, object, string][] = [
      [bob.orgId, {}, 'SQ401'],
      [bob.orgId, { org: bob.orgId }, 'SQ401'],
      [null, {}, 'SQ401'],
      [ada.orgId, { secret: 'wrong' }, 'SQ401'],
      [ada.orgId, { user: bob.userId }, 'SQ401'],
      [ada.orgId, { least_role: 'admin' }, 'SQ403'],
      [null, { all_orgs: true }, 'SQ403'],
      [bob.orgId, { all_orgs: null }, 'SQ403'],
      [bob.orgId, { all_orgs: undefined }, 'SQ403'],
      [null, { all_orgs: undefined }, 'SQ403'],
      [ada.orgId, { least_role: undefined }, 'SQ403'],
      [ada.orgId, { least_role: 'nobody' }, 'SQ403'],
    ]
    for (const [orgId, proof, code] of refusals) {
      await assert.rejects(call(client, ada, orgId, proof), { code }, JSON.stringify(proof))
    }
    // Without a proof, the transaction must have entered.
    const text = `select from smartqueue.list_jobs($1, '{}', $2, $3, 10, null)`
    await assert.rejects(client.query(text, [ada.orgId, FIRST_ID, LAST_ID]), { code: 'SQ401' })
  })
})

const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const proofOf = ({ orgId, userId, sessionId, secret }: Tenant) => ({
  org: orgId,
  user: userId,
  session: sessionId,
  key: null,
  secret,
  least_role: 'user',
  all_orgs: false,
})

test('the setting of one transaction is gone in the next', async () => {
  await withClient(asLogin(database.url, 'functions'), async (client) => {
    await client.query('begin')
    await enterAs(client, ada)
    assert.ok((await client.query('select from smartqueue.jobs')).rowCount)
    await client.query('commit')
    assert.equal((await client.query('select from smartqueue.jobs')).rowCount, 0)
  })
})

test("a row of another organisation can neither be written nor moved there, nor one's own given away", async () => {
  const refused = { code: '42501' }
  await inScope(ada, async (client) => {
    await assert.rejects(
      client.query(`insert into smartqueue.pauses (org_id, type) values ($1, 'theirs')`, [bob.orgId]),
      refused,
    )
  })
  await inScope(ada, async (client) => {
    await assert.rejects(client.query(`update smartqueue.waiting_jobs set org_id = $1`, [bob.orgId]), refused)
  })
  await inScope(ada, async (client) => {
    const { rowCount } = await client.query('delete from smartqueue.pauses where org_id = $1', [bob.orgId])
    assert.equal(rowCount, 0)
  })
})

test('nobody writes themselves into an organisation, or an invitation for themselves', async () => {
  for (const statement of [
    `insert into smartqueue.memberships (org_id, user_id, role) values ('${bob.orgId}', '${ada.userId}', 'org_admin')`,
    `insert into smartqueue.invitations (id, org_id, role, user_id, invited_by, expires_at)
     values (gen_random_uuid(), '${bob.orgId}', 'org_admin', '${ada.userId}', '${bob.userId}', now() + interval '1 day')`,
    `insert into smartqueue.orgs (id, name) values (gen_random_uuid(), 'not entered')`,
    `insert into smartqueue.refresh_families (id, user_id, org_id, secret_hash)
     values (gen_random_uuid(), '${bob.userId}', '${bob.orgId}', '')`,
  ]) {
    await inScope(ada, (client) => assert.rejects(client.query(statement), { code: '42501' }, statement))
  }
})

test('a statement that forgets the organisation touches only that of its own', async () => {
  await database.sql('insert into smartqueue.pauses (org_id) values ($1), ($2)', [ada.orgId, bob.orgId])
  await inScope(ada, async (client) => {
    const { rows } = await client.query('delete from smartqueue.pauses returning org_id')
    assert.deepEqual([...new Set(rows.map(({ org_id }) => org_id))], [ada.orgId])
  })
})

test('views show no more than their tables', async () => {
  for (const view of ['job_overview', 'queue_entries']) {
    await inScope(ada, async (client) => {
      const { rows } = await client.query(`select distinct org_id from smartqueue.${view}`)
      assert.deepEqual(rows, [{ org_id: ada.orgId }], view)
    })
  }
})

test('jobs of an organisation that was not entered cannot be searched', async () => {
  const job = await jobInState(database.run, bob, 'ready', { tags: ['secret'] })
  const { text, values } = findJobs({ orgId: bob.orgId, filter: { tag: 'secret' }, before: null, limit: 10 })
  const everywhere = findJobs({ orgId: null, filter: {}, before: null, limit: 10 })
  await inScope(bob, async (client) =>
    assert.deepEqual((await client.query(text, [...values])).rows, [{ ids: [job], next_id: null }]),
  )
  await inScope(ada, (client) => assert.rejects(client.query(text, [...values]), { code: 'SQ401' }))
  await inScope(ada, (client) =>
    assert.rejects(client.query(everywhere.text, [...everywhere.values]), { code: 'SQ401' }),
  )
})

test('nobody writes to the audit log in the name of another, and nobody changes it', async () => {
  const entry = `insert into smartqueue.audit_log (org_id, action, actor_id) values ($1, 'org.created', $2)`
  await inScope(ada, async (client) => {
    await assert.rejects(client.query(entry, [ada.orgId, bob.userId]), { code: '42501' })
  })
  await inScope(ada, async (client) => {
    await assert.rejects(client.query(entry, [bob.orgId, ada.userId]), { code: '42501' })
  })
  await database.sql(entry, [ada.orgId, ada.userId])
  for (const change of [
    'update smartqueue.audit_log set action = $$a.b$$',
    'delete from smartqueue.audit_log',
    'truncate smartqueue.audit_log',
  ]) {
    await inScope(ada, (client) => assert.rejects(client.query(change), { code: '42501' }))
    await assert.rejects(database.sql(change), { code: '42501' }, 'not even the owner')
  }
})

test('the functions cannot make an admin', async () => {
  for (const statement of [
    'update smartqueue.users set is_admin = true',
    `insert into smartqueue.users (id, username, password_hash, is_admin) values (gen_random_uuid(), 'mallory', 'x', true)`,
  ]) {
    await inScope(ada, (client) => assert.rejects(client.query(statement), { code: '42501' }))
  }
})

test('workers see all of the queue, and no account, key or token', async () => {
  await withClient(asLogin(database.url, 'workers'), async (client) => {
    const { rows } = await client.query('select distinct org_id from smartqueue.jobs')
    assert.equal(rows.length, 2)
    const closed = ['users', 'memberships', 'api_keys', 'invitations', 'audit_log', 'webhook_sources']
    for (const table of closed) {
      await assert.rejects(client.query(`select * from smartqueue.${table}`), { code: '42501' }, table)
    }
    await assert.rejects(client.query('select token_hash from smartqueue.refresh_tokens'), { code: '42501' })
    assert.equal(
      (await client.query('select expires_at from smartqueue.refresh_tokens')).rowCount,
      0,
      'none has expired',
    )
  })
})

const inspect = (url: string, group: string): Promise<string | null | undefined> =>
  withClient(url, async (client) => {
    const { text, values } = findRowSecurityFault(group)
    const { rows } = await client.query<{ fault: string | null }>(text, [...values])
    return rows[0]?.fault
  })

test('a role that could bypass row-level security is named, and a proper one is accepted', async () => {
  assert.equal(await inspect(asLogin(database.url, 'functions'), FUNCTIONS_ROLE), null)
  assert.equal(await inspect(asLogin(database.url, 'workers'), WORKERS_ROLE), null)
  assert.match((await inspect(database.url, FUNCTIONS_ROLE)) ?? '', /smartqueue bypasses row-level security/)
  assert.match((await inspect(asLogin(database.url, 'both'), WORKERS_ROLE)) ?? '', /groups of both/)
  assert.match((await inspect(asLogin(database.url, 'workers'), FUNCTIONS_ROLE)) ?? '', /not in the group/)
})

test('nor may a role have a bypass within reach, or own a table', async () => {
  const login = { name: `test_reach_${process.pid}`, password: 'test' }
  const url = withLogin(database.url, login)
  await withClient(database.url, (client) => ensureLogin(client, 'functions', login))
  assert.equal(await inspect(url, FUNCTIONS_ROLE), null)
  await database.sql(`grant smartqueue to ${login.name}`)
  assert.match((await inspect(url, FUNCTIONS_ROLE)) ?? '', /can become smartqueue/)
  await database.sql(`revoke smartqueue from ${login.name}`)
  await database.sql(`alter role ${login.name} bypassrls`)
  assert.match((await inspect(url, FUNCTIONS_ROLE)) ?? '', /bypasses row-level security/)
  await database.sql(`alter role ${login.name} nobypassrls`)
  await database.sql(`grant create on schema smartqueue to ${login.name}`)
  await database.sql(`alter table smartqueue.pauses owner to ${login.name}`)
  assert.match((await inspect(url, FUNCTIONS_ROLE)) ?? '', /owns the table pauses/)
  await database.sql('alter table smartqueue.pauses owner to smartqueue_owner')
  await database.sql('alter table smartqueue.pauses no force row level security')
  assert.match(
    (await inspect(url, FUNCTIONS_ROLE)) ?? '',
    /The table pauses has no forced row-level security/,
  )
  await database.sql('alter table smartqueue.pauses force row level security')
  assert.match((await inspect(url, FUNCTIONS_ROLE)) ?? '', /may create objects in the schema smartqueue/)
  await database.sql(`revoke create on schema smartqueue from ${login.name}`)
  await database.sql(`drop role ${login.name}`)
})

test('the functions require timeouts, and neither runtime may create temporary tables', async () => {
  const { pathname } = new URL(database.url)
  const login = { name: `test_timeouts_${process.pid}`, password: 'test' }
  const url = withLogin(database.url, login)
  await withClient(database.url, (client) => ensureLogin(client, 'functions', login))
  const rights = `temporary on database ${pathname.slice(1)}`

  await database.sql(`grant ${rights} to ${login.name}`)
  assert.match((await inspect(url, FUNCTIONS_ROLE)) ?? '', /may create temporary tables.*npm run migrate/)
  await database.sql(`revoke ${rights} from ${login.name}`)
  await database.sql(`grant ${rights} to public`)
  assert.match((await inspect(asLogin(database.url, 'workers'), WORKERS_ROLE)) ?? '', /may create temporary/)
  await database.sql(`alter role ${login.name} set lock_timeout = 0`)
  await database.sql(`alter role ${login.name} reset statement_timeout`)

  await migrateDatabase(database.url)
  assert.equal(await inspect(asLogin(database.url, 'workers'), WORKERS_ROLE), null)
  assert.match(
    (await inspect(url, FUNCTIONS_ROLE)) ?? '',
    /has no lock_timeout\./,
    'missing settings are added, and settings chosen by an operator are kept',
  )
  await withClient(database.url, (client) => ensureLogin(client, 'functions', login))
  assert.equal(await inspect(url, FUNCTIONS_ROLE), null)
  await database.sql(`drop role ${login.name}`)
})
