import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { deleteAccount, deleteOrg, removeDeletedOrg } from '../../db/queries/deletion.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { closeOrg, runAs, settleDeletion } from '../support/deletion.ts'
import { fillTables, tablesWithOrg } from '../support/every-table.ts'
import { claim, clearJobs, lead, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let term: string
before(async () => {
  database = await createTestDatabase()
  term = await lead(database.run)
})
after(() => database.drop())

const close = (tenant: Tenant) => closeOrg(database, tenant)
const settle = (tenant: Tenant) => settleDeletion(database, tenant)
const remove = async (limit = 500, inTerm = term) => (await database.run(removeDeletedOrg(inTerm, limit)))[0]

const removeAll = async (limit = 500): Promise<number[]> => {
  const removed: number[] = []
  for (let batch = await remove(limit); batch; batch = await remove(limit)) removed.push(batch.removed)
  return removed
}

/** Counts the rows of an organisation in each table with an organisation column. A lease names several. */
const countRows = async ({ orgId }: Tenant): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {}
  const count = async (name: string, from: string) => {
    const [row] = await database.sql<{ n: number }>(`select count(*)::int as n from ${from}`, [orgId])
    counts[name] = row?.n ?? -1
  }
  for (const table of await tablesWithOrg(database)) await count(table, `${table} where org_id = $1`)
  await count('orgs', 'orgs where id = $1')
  await count('leases', 'leases where $1 = any (org_ids)')
  return counts
}

const tablesLeft = async (tenant: Tenant): Promise<string[]> => {
  const counts = await countRows(tenant)
  return Object.keys(counts).filter((table) => counts[table] !== 0)
}

test('no table keeps rows of a deleted organisation, and no rows of another are removed', async () => {
  const [gone, kept] = [await seedTenant(database.run), await seedTenant(database.run)]
  for (const tenant of [gone, kept]) await fillTables(database, tenant)
  const before = await countRows(kept)
  assert.ok(!Object.values(before).includes(0), 'every table has rows to remove')
  assert.equal(await remove(), undefined, 'no rows of organisations that were not deleted are removed')
  await close(gone)
  await settle(gone)

  assert.equal(await remove(3, '0'), undefined, 'not in another term')
  assert.equal((await remove(3))?.removed, 0, 'first its jobs are taken from their workers')
  for (let batch = 0; batch < 5; batch++) assert.equal((await remove(3))?.removed, 3)
  // The leader is gone; the next one continues.
  term = await lead(database.run)
  for (let batch = 0; batch < 5; batch++) assert.equal((await remove(3))?.removed, 3)
  // Everything but the organisation's own row is removed in batches. A cascade from that row would be
  // unbounded.
  let removed = 3
  while (removed > 0) {
    const [batch] = await database.sql<{ n: number }>('select smartqueue.remove_org_rows($1, 3, true) as n', [
      gone.orgId,
    ])
    removed = batch?.n ?? 0
    assert.ok(removed <= 3)
  }
  assert.deepEqual(await tablesLeft(gone), ['orgs'])
  assert.equal((await remove(3))?.finished, true)
  assert.deepEqual(await tablesLeft(gone), [])
  assert.deepEqual(await countRows(kept), before)
  const record = await database.sql(
    'select requested_by, removed_at is not null as removed from smartqueue.org_deletions where id = $1',
    [gone.orgId],
  )
  assert.deepEqual(record, [{ requested_by: gone.userId, removed: true }])
})

test('rows written while the organisation was being closed are removed, too', async () => {
  const tenant = await seedTenant(database.run)
  await close(tenant)
  await removeAll()
  assert.equal((await countRows(tenant)).orgs, 1, 'not finished while somebody may still be writing')
  // Written by a transaction that entered before the deletion.
  await seedJobs(database.run, tenant, [newJob()])
  await settle(tenant)
  await removeAll()
  const left = await countRows(tenant)
  assert.deepEqual([left.jobs, left.ready_jobs, left.series, left.orgs], [0, 0, 0, 0])
})

test('jobs of a deleted organisation are no longer claimed, and running ones are taken from their workers', async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
  const [gone, kept] = [await seedTenant(database.run), await seedTenant(database.run)]
  const [lost] = await seedJobs(database.run, gone, [newJob()])
  const [safe] = await seedJobs(database.run, kept, [newJob()])
  assert.equal((await claim(database.run, 'worker-1', 2)).length, 2, 'one lease, two organisations')
  await seedJobs(database.run, gone, [newJob()])
  await close(gone)
  assert.deepEqual(await claim(database.run, 'worker-2', 2), [])
  assert.deepEqual((await remove())?.worker_ids, ['worker-1'])
  const held = await database.sql<{ job_id: string }>('select job_id from smartqueue.held_jobs')
  assert.deepEqual(held, [{ job_id: safe }], `without ${lost}`)
})

test('a batch reads only rows of its own organisation', async () => {
  const [gone, busy] = [await seedTenant(database.run), await seedTenant(database.run)]
  const ROWS = 2_000
  await seedJobs(
    database.run,
    busy,
    Array.from({ length: ROWS }, () => newJob()),
  )
  await database.sql(
    `with job as (
      select org_id, id, series_id, row_number() over () as n from smartqueue.jobs where org_id = $1
    ),
    finished as (
      insert into smartqueue.finished_jobs (org_id, job_id, series_id, state, attempts) select org_id, id, series_id, 'completed', 1 from job
    ),
    tried as (
      insert into smartqueue.attempts (org_id, job_id, attempt, outcome, worker_id, started_at) select org_id, id, 1, 'lost', 'w', now() from job
    ),
    waiting as (
      insert into smartqueue.waiting_jobs (job_id, org_id, state, attempts, wake_at) select id, org_id, 'pending', 0, now() from job
    ),
    blocked as (
      insert into smartqueue.blocked_jobs (job_id, org_id, remaining, on_parent_failure) select id, org_id, 1, 'fail' from job
    ),
    log as (
      insert into smartqueue.job_logs (org_id, job_id, attempt, at, level, message) select org_id, id, 1, now(), 'info', 'm' from job
    ),
    event as (
      insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select org_id, array[id], '{ready}', '{0}', '{}', '{}' from job
    ),
    key as (
      insert into smartqueue.idempotency_keys (org_id, key, body_hash, job_ids, created_at) select org_id, id, '', '{}', now() from job
    ),
    delivery as (
      insert into smartqueue.webhook_deliveries (org_id, id, source_id, status, headers) select org_id, id, id, 'filtered', '{}' from job
    ),
    family as (
      insert into smartqueue.refresh_families (id, user_id, org_id, secret_hash) select id, $2, org_id, '' from job
    ),
    rollup as (
      insert into smartqueue.job_rollups (org_id, span, at) select org_id, 60, now() - n * interval '1 minute' from job
    )
    insert into smartqueue.audit_log (org_id, action, target) select org_id, 'queue.paused', '{}' from job`,
    [busy.orgId, busy.userId],
  )
  await database.sql(
    `insert into smartqueue.refresh_tokens (token_hash, family_id, expires_at) select sha256(id::text::bytea), id, now() from smartqueue.refresh_families`,
  )
  await fillTables(database, gone)
  await database.sql('analyze')
  await close(gone)
  await settle(gone)
  assert.equal((await remove())?.removed, 0, 'first its jobs are taken from their workers')
  const read = await withClient(asLogin(database.url, 'workers'), async (client) => {
    const { text, values } = removeDeletedOrg(term, 500)
    await client.query('begin')
    const { rows } = await client.query(text, [...values])
    assert.equal(rows[0]?.finished, true)
    const scanned = await client.query(
      `select relname as table from pg_stat_xact_user_tables where seq_tup_read + coalesce(idx_tup_fetch, 0) >= $1`,
      [ROWS],
    )
    await client.query('commit')
    return scanned.rows
  })
  assert.deepEqual(read, [])
})

test('only the audit log of an organisation that is being deleted can be deleted', async () => {
  const [gone, kept] = [await seedTenant(database.run), await seedTenant(database.run)]
  await close(gone)
  await database.sql('delete from smartqueue.audit_log where org_id = $1', [gone.orgId])
  await assert.rejects(database.sql('delete from smartqueue.audit_log where org_id = $1', [kept.orgId]), {
    code: '42501',
  })
  await settle(gone)
  await removeAll()
})

test('an org_admin deletes an organisation with the password and the name, and only once', async () => {
  const [owner, other] = [await seedTenant(database.run), await seedTenant(database.run)]
  const [org] = await database.sql<{ name: string }>('select name from smartqueue.orgs where id = $1', [
    owner.orgId,
  ])
  const right = {
    ...{ orgId: owner.orgId, name: org?.name ?? '', passwordHash: 'none' },
    ...{ sessionId: uuidV7(), spareOrgId: uuidV7() },
  }
  const attempt = async (who: Tenant, change: Partial<typeof right>) =>
    (await runAs(database, who, deleteOrg({ ...right, ...change })))[0]?.outcome
  assert.equal(await attempt(other, {}), 'refused', 'a stranger')
  assert.equal(await attempt(owner, { passwordHash: 'of yesterday' }), 'refused')
  assert.equal(await attempt(owner, { name: 'another' }), 'wrong_name')
  assert.equal(await attempt(owner, { orgId: uuidV7() }), 'unknown')
  assert.equal(await attempt(owner, {}), 'deleted')
  assert.equal(await attempt({ ...owner, orgId: right.spareOrgId }, {}), 'unknown', 'twice')
})

/** Columns that may hold the id of a deleted account: it no longer identifies anyone. */
const KEPT_IDS = [
  ...['audit_log.actor_id', 'callback_endpoints.created_by', 'jobs.created_by', 'org_deletions.requested_by'],
  ...['schedules.created_by', 'webhook_sources.created_by'],
]

test('a deleted account leaves neither its name nor a row that refers to it', async () => {
  const name = `somebody-${uuidV7()}`
  const [person, host] = [await seedTenant(database.run, name), await seedTenant(database.run)]
  await database.sql(
    `insert into smartqueue.memberships (org_id, user_id, role) values ($1, $2, 'org_admin')`,
    [host.orgId, person.userId],
  )
  await fillTables(database, { ...person, orgId: host.orgId })
  await fillTables(database, person)
  await database.sql(
    `insert into smartqueue.invitations (id, org_id, role, user_id, invited_by, expires_at, accepted_by)
    values ($1, $2, 'user', $3, $4, now(), $3), ($5, $2, 'user', $4, $4, now(), $3)`,
    [uuidV7(), host.orgId, person.userId, host.userId, uuidV7()],
  )
  await database.sql(
    `insert into smartqueue.sign_in_attempts (name_hash, attempts, last_attempt) values (sha256($1), 1, now())`,
    [Buffer.from(name)],
  )
  const [deletion] = await runAs(database, person, deleteAccount('none'))
  assert.deepEqual(deletion, { outcome: 'deleted', orgs: [{ id: person.orgId, name }] })
  await settle(person)
  await removeAll()

  const columns = await database.sql<{ table: string; column: string; type: string }>(
    `select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relkind = 'r' and c.relnamespace = 'smartqueue'::regnamespace`,
  )
  const found = async (type: RegExp, condition: (column: string) => string, value: string) => {
    const places: string[] = []
    for (const { table, column, type: of } of columns) {
      if (!type.test(of)) continue
      const rows = await database.sql(`select from ${table} where ${condition(column)} limit 1`, [value])
      if (rows.length > 0) places.push(`${table}.${column}`)
    }
    return places
  }
  const ids = await found(/^uuid$/, (column) => `${column} = $1`, person.userId)
  assert.deepEqual(
    ids.filter((place) => !KEPT_IDS.includes(place)),
    [],
  )
  assert.deepEqual(
    await found(/^(text|jsonb|job_name)$/, (column) => `strpos(${column}::text, $1) > 0`, name),
    [],
  )
  const [attempts] = await database.sql<{ n: number }>(
    'select count(*)::int as n from smartqueue.sign_in_attempts where name_hash = sha256($1)',
    [Buffer.from(name)],
  )
  assert.equal(attempts?.n, 0)
  const [entry] = await database.sql(
    `select actor_id, target from smartqueue.audit_log where org_id = $1 and action = 'account.deleted'`,
    [host.orgId],
  )
  assert.deepEqual(entry, { actor_id: person.userId, target: { user_id: person.userId } })
})

test('when the last two org_admins delete their accounts at the same time, one stays', async () => {
  const [ada, bob, guest] = await Promise.all(Array.from({ length: 3 }, () => seedTenant(database.run)))
  assert.ok(ada && bob && guest)
  await database.sql(
    `insert into smartqueue.memberships (org_id, user_id, role) values ($1, $2, 'org_admin'), ($1, $3, 'user')`,
    [ada.orgId, bob.userId, guest.userId],
  )
  const outcomes = await Promise.all(
    [ada, bob].map((person) => runAs(database, person, deleteAccount('none'))),
  )
  assert.deepEqual(outcomes.map(([deletion]) => deletion?.outcome).sort(), ['blocked', 'deleted'])
})

test('jobs of an organisation that was deleted after a large one are stopped before that one is removed', async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
  const [large, small] = [await seedTenant(database.run), await seedTenant(database.run)]
  await seedJobs(
    database.run,
    large,
    Array.from({ length: 20 }, () => newJob()),
  )
  await close(large)
  await seedJobs(database.run, small, [newJob()])
  assert.equal((await claim(database.run, 'worker-1', 1)).length, 1)
  await close(small)
  assert.deepEqual((await remove(3))?.worker_ids, ['worker-1'])
  assert.deepEqual(await database.sql('select job_id from smartqueue.held_jobs'), [])
  assert.notEqual((await countRows(large)).jobs, 0)
})
