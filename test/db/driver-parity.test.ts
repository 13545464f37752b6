import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { findAccount, registerAccount } from '../../db/queries/accounts.ts'
import { findDatabase } from '../../db/queries/databases.ts'
import { appendJobLogs, listJobLogs } from '../../db/queries/job-logs.ts'
import { listJobTypes, registerJobTypes } from '../../db/queries/job-types.ts'
import { getJob, listJobs, submitJobs } from '../../db/queries/jobs.ts'
import { claimJobs, endAttempts, releaseJobs, renewLeases } from '../../db/queries/leases.ts'
import { ping } from '../../db/queries/notifications.ts'
import { rotateRefreshToken, startRefreshFamily } from '../../db/queries/refresh-tokens.ts'
import { schemaVersion } from '../../db/queries/schema-version.ts'
import { reclaimExpiredLeases, wakeDueJobs } from '../../db/queries/upkeep.ts'
import type { Query, Run } from '../../db/query.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { newJob } from '../support/jobs.ts'

const id = (n: number): string => `019a8000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** LISTEN needs a session and so has no meaning over HTTP. */
const TCP_ONLY = ['listen-for-ready-jobs']

let overTcp: TestDatabase
let overHttp: TestDatabase
let edge: Edge

before(async () => {
  ;[overTcp, overHttp] = await Promise.all([createTestDatabase(), createTestDatabase()])
  edge = await startEdge({ databaseUrl: overHttp.url, main: './query-worker.toml' })
})
after(async () => {
  await edge.stop()
  await Promise.all([overTcp.drop(), overHttp.drop()])
})

/** Every statement once, in a life of a few jobs. The answers, with what differs by nature put aside. */
const playScenario = async (
  run: Run,
  expireLeases: () => Promise<unknown>,
): Promise<Map<string, unknown[]>> => {
  const answers = new Map<string, unknown[]>()
  const play = async <Row>(query: Query<Row>): Promise<Row[]> => {
    const rows = await run(query)
    answers.set(query.name, [...(answers.get(query.name) ?? []), rows.map(stable)])
    return rows
  }
  const tenant = { orgId: id(1), userId: id(2) }
  const text = `'; drop table jobs; -- "quotes" \\ back $1 ünïcödé 🚀 \t tab`
  const refreshTokenHash = 'aa'.repeat(32)
  const account = {
    ...tenant,
    familyId: id(3),
    username: 'ada',
    passwordHash: text,
    refreshTokenHash,
    refreshTokenDays: 30,
  }
  await play(ping())
  await play(findDatabase('template1'))
  await play(schemaVersion())
  await play(registerAccount(account))
  await play(registerAccount({ ...account, userId: id(4), orgId: id(5), username: 'ADA' }))
  await play(findAccount('Ada'))
  const signIn = { familyId: id(6), userId: id(2), orgId: id(1), tokenHash: 'bb'.repeat(32), days: 30 }
  await play(startRefreshFamily(signIn))
  const rotation = { presentedHash: 'bb'.repeat(32), successorHash: 'cc'.repeat(32), days: 30 }
  await play(rotateRefreshToken(rotation))
  await play(rotateRefreshToken(rotation))
  await play(registerJobTypes([{ type: 'test', payload_schema: { type: 'object', title: text } }]))
  await play(listJobTypes())
  const payload = {
    text,
    int: 9_007_199_254_740_991,
    float: 1.5e-7,
    nothing: null,
    list: [1, [2]],
    flag: true,
  }
  const jobs = [
    newJob({ id: id(11), name: text, payload, tags: ['a,b', text], priority: 'high', rank: -2 }),
    newJob({ id: id(12), run_at: '2020-01-01T00:00:00+01:00', timeout_seconds: 5 }),
    newJob({ id: id(13), run_at: '2999-12-31T23:59:59.123Z', backoff_multiplier: 1.25 }),
    newJob({ id: id(14), max_attempts: 1 }),
  ]
  await play(submitJobs({ ...tenant, jobs }))
  await play(submitJobs({ orgId: id(1), userId: id(99), jobs: [newJob({ id: id(15) })] }))
  const claimed = await play(claimJobs({ workerId: 'w', types: ['test'], limit: 3, leaseSeconds: 30 }))
  await play(renewLeases(claimed, 30))
  const [first, second, third] = claimed
  assert.ok(first && second && third)
  const lines = [1, 2].map((n) => ({
    ...first,
    at: '2026-01-01T00:00:00Z',
    level: 'info',
    message: `${n} ${text}`,
  }))
  await play(appendJobLogs(JSON.stringify(lines)))
  await play(listJobLogs({ orgId: id(1), jobId: id(11), after: null, limit: 10 }))
  const error = { code: 'broken', message: text }
  await play(
    endAttempts(
      JSON.stringify([
        { ...first, state: 'completed', result: payload },
        { ...second, state: 'retrying', error, delay_ms: 0 },
        { job_id: third.job_id, token: id(98), state: 'completed', result: null },
      ]),
    ),
  )
  await play(wakeDueJobs(10))
  const again = await play(claimJobs({ workerId: 'w', types: ['test'], limit: 1, leaseSeconds: 30 }))
  await play(releaseJobs(again, 'shutdown'))
  await expireLeases()
  await play(reclaimExpiredLeases(10))
  for (const job of jobs) await play(getJob(id(1), job.id))
  await play(getJob(id(2), id(11)))
  await play(listJobs({ orgId: id(1), before: null, limit: 2 }))
  await play(listJobs({ orgId: id(1), before: id(13), limit: 10 }))
  return answers
}

/** Tokens and the database's clock differ between two runs; that they are there, and their type, must not. */
const stable = (row: unknown): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row as Record<string, unknown>).map(([key, value]) => {
      if (key === 'token') return [key, typeof value]
      if (value instanceof Date && value.getUTCFullYear() === new Date().getUTCFullYear()) return [key, 'now']
      return [key, value]
    }),
  )

const untag = (_key: string, value: unknown): unknown => {
  const tagged = value as { $date?: string } | null
  return typeof tagged === 'object' && tagged?.$date ? new Date(tagged.$date) : value
}

test('every statement answers the same over HTTP from workerd and over TCP', async () => {
  const runFromWorkerd: Run = async (query) => {
    const answer = await edge.request('POST', '/', { json: query })
    assert.equal(answer.status, 200, answer.text)
    return JSON.parse(answer.text, untag)
  }
  const expireLeases = (database: TestDatabase) => () => database.sql(`update leases set expires_at = now()`)
  const expected = await playScenario(overTcp.run, expireLeases(overTcp))
  const actual = await playScenario(runFromWorkerd, expireLeases(overHttp))
  assert.deepEqual(actual, expected)

  const all = await everyStatementName()
  assert.deepEqual(
    [...expected.keys(), ...TCP_ONLY].sort(),
    all,
    'the scenario plays every statement of db/queries',
  )
})

/** Statement names as they stand in the sources: a new one must join the scenario. */
const everyStatementName = async (): Promise<string[]> => {
  const sources = await Promise.all(globSync('db/queries/*.ts').map((file) => readFile(file, 'utf8')))
  return sources
    .flatMap((source) => [...source.matchAll(/^ {2}name: '([\w-]+)'/gm)].map(([, name]) => name ?? ''))
    .sort()
}
