import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { JobPrediction } from '../../db/learning/prediction.ts'
import { findUser, listUsers, nameOf, registerAccount } from '../../db/queries/accounts.ts'
import { getQueueDepth, getSchedulingGain, getThroughput } from '../../db/queries/analytics.ts'
import { getPredictionAccuracy } from '../../db/queries/analytics-accuracy.ts'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { measureStretch, readCapacity, readStretch, storeGains } from '../../db/queries/analytics-gain.ts'
import { findUncounted, rollUp } from '../../db/queries/analytics-rollup.ts'
import { getSummary } from '../../db/queries/analytics-summary.ts'
import { createApiKey, findApiKey, listApiKeys, revokeApiKey } from '../../db/queries/api-keys.ts'
import { listAttempts } from '../../db/queries/attempts.ts'
import { listAuditLog } from '../../db/queries/audit.ts'
import { readAutoscale } from '../../db/queries/autoscale.ts'
import { findNearTicks, takeAutoscaleSnapshot } from '../../db/queries/autoscale-snapshot.ts'
import { disableCallbackUrl, findCallbackAddress } from '../../db/queries/callback-delivery.ts'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  getCallbackSecret,
  getEndpoint,
  listEndpoints,
  rotateCallbackSecret,
} from '../../db/queries/callback-endpoints.ts'
import { listJobCallbacks } from '../../db/queries/callback-job.ts'
import { findCallbacks } from '../../db/queries/callback-outbox.ts'
import { listDeadLetters } from '../../db/queries/dead-letters.ts'
import {
  deleteAccount,
  deleteOrg,
  listOrgDeletions,
  listOwnOrgs,
  removeDeletedOrg,
} from '../../db/queries/deletion.ts'
import { getCallbackCursor, moveCallbackCursor, restartCursors } from '../../db/queries/event-cursors.ts'
import { ACCOUNT_EXPORT, ORG_EXPORT } from '../../db/queries/export.ts'
import {
  acceptInvitation,
  createInvitation,
  listInvitations,
  revokeInvitation,
} from '../../db/queries/invitations.ts'
import { getObstacles, readJobs } from '../../db/queries/job-facts.ts'
import { getJobGraph } from '../../db/queries/job-graph.ts'
import { appendJobLogs, followJob, listJobLogs } from '../../db/queries/job-logs.ts'
import { listJobTypes, registerJobTypes } from '../../db/queries/job-types.ts'
import { findJobOrg, getJob } from '../../db/queries/jobs.ts'
import { beginTerm } from '../../db/queries/leader.ts'
import {
  type AccuracyValues,
  forgetTypes,
  getLearningState,
  readExecutions,
  recallExecutions,
  recallOrgs,
  recallOrgTypes,
  recallSeries,
  recallTypes,
  storeLearned,
} from '../../db/queries/learning.ts'
import { readLoad, recallForecaster, storeForecast, storeForecaster } from '../../db/queries/load.ts'
import { changeMember, listMembers } from '../../db/queries/members.ts'
import { addEdgeTotals, readMetrics } from '../../db/queries/metrics.ts'
import { getEtaAccuracy, getModelCard } from '../../db/queries/model-card.ts'
import { crownModel, listModels, rollBackModel, storeChallenger } from '../../db/queries/models.ts'
import { notify, ping, probeDisk } from '../../db/queries/notifications.ts'
import { createOrg, getOrg, listOrgs, switchOrg } from '../../db/queries/orgs.ts'
import { pauseQueue, resumeQueue } from '../../db/queries/pauses.ts'
import { countFaults, getModelWeights, getPredictionInputs } from '../../db/queries/prediction-inputs.ts'
import { saveProgress } from '../../db/queries/progress.ts'
import { getQueue, listOrgQueues, refreshQueueSums } from '../../db/queries/queue-facts.ts'
import { getQuotas, setQuotas } from '../../db/queries/quotas.ts'
import { hitRateLimit } from '../../db/queries/rate-limits.ts'
import { getLeader, listPodLoads, listWorkers } from '../../db/queries/registry.ts'
import { FUNCTIONS_ROLE, findRowSecurityFault } from '../../db/queries/row-level-security.ts'
import { findDueSchedules, holdSchedule, listTicks, recordTicks } from '../../db/queries/schedule-ticks.ts'
import {
  auditScheduleRun,
  changeSchedule,
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
} from '../../db/queries/schedules.ts'
import { schemaVersion } from '../../db/queries/schema-version.ts'
import { enter, enterWithSource, takeTurns } from '../../db/queries/scope.ts'
import { endOwnSessions, endSession, listSessions, rotateRefreshToken } from '../../db/queries/sessions.ts'
import { auditFailedSignIn, beginSignIn, changePassword, startSession } from '../../db/queries/sign-in.ts'
import { enterStream, readStream } from '../../db/queries/stream.ts'
import { getDelivery, listDeliveries } from '../../db/queries/webhook-deliveries.ts'
import { journalDelivery, journalRejection } from '../../db/queries/webhook-journal.ts'
import {
  changeSource,
  createSource,
  deleteSource,
  findReceivingSource,
  getSource,
  listSources,
  rotateSecret,
} from '../../db/queries/webhook-sources.ts'
import { askForWork, reportWorker } from '../../db/queries/workers.ts'
import type { Query, Run } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { type ClaimedJob, claimSuspect } from '../../db/queue/exchange.ts'
import { findJobs, type JobFilter, listJobs } from '../../db/queue/find-jobs.ts'
import { releaseJobs, renewLeases, reportSlowJobs } from '../../db/queue/leases.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { submitJobs } from '../../db/queue/submit.ts'
import { findIdempotencyKeys, findSubmitted } from '../../db/queue/submitted.ts'
import {
  askToIsolate,
  endIsolation,
  lookOut,
  markSilentWorkers,
  moveHeldBackJobs,
  reclaimExpiredLeases,
  rescoreJobs,
  reserveCapacity,
  SWEEP_START,
  takeMovedSeries,
  wakeDueJobs,
} from '../../db/queue/upkeep.ts'
import { deleteExpired, deleteStale, EXPIRING, forgetIdleSeries } from '../../db/retention/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { exchange, held, newJob } from '../support/jobs.ts'
import { newScheduledJob } from '../support/schedules.ts'

/** They need a session of their own, and so have no meaning over HTTP, or a transaction that was entered before. */
const TCP_ONLY = [
  'listen',
  'try-to-lead',
  'confirm-term',
  'end-silent-leader',
  'open-invitation',
  'open-invitation-by-token',
]

/** What only an operator may: `npm run admin`, as the owner of the database. */
const OWNER_ONLY = [
  ...['create-account', 'set-admin', 'list-admins', 'reset-password'],
  ...['describe-login', 'describe-drop', 'describe-timeouts', 'describe-revocations'],
  ...['describe-database', 'inspect-schema'],
]

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
const PREDICTION: JobPrediction = {
  p50Log: 1 / 3,
  p90Log: Math.log(10),
  p99Log: null,
  source: 'lstm',
  modelVersion: 3,
  spreadLog: 0.5,
  residualLog: -0.25,
  sample: btoa('\0\xff'),
  promisedWaitMs: 1e-7,
}

const id = (n: number): string => `019a8000-0000-7000-8000-${String(n).padStart(12, '0')}`
/** Whatever a driver could get wrong. */
const TEXT = `'; drop table smartqueue.jobs; -- "quotes" \\ back $1 ünïcödé 🚀 \t tab`
const TENANT = { orgId: id(1), userId: id(2), sessionId: id(63), keyId: null, secret: TEXT }
const PAYLOAD = {
  text: TEXT,
  int: 9_007_199_254_740_991,
  float: 1.5e-7,
  nothing: null,
  list: [1, [2]],
  flag: true,
}

let overTcp: TestDatabase
let overHttp: TestDatabase
let edge: Edge

before(async () => {
  ;[overTcp, overHttp] = await Promise.all([createTestDatabase(), createTestDatabase()])
  edge = await startEdge({ databaseUrl: overHttp.url, login: 'both', main: './query-worker.toml' })
})
after(async () => {
  await edge.stop()
  await Promise.all([overTcp.drop(), overHttp.drop()])
})

/** `play` runs a statement and notes the answer; `sql` puts the database into a state, without a note. */
type Stage = { play: Run; sql: TestDatabase['sql'] }

const playOperations = async ({ play }: Stage): Promise<void> => {
  await play(ping())
  await play(notify('a_channel', [TEXT, '']))
  await play(schemaVersion())
  for (const statement of probeDisk()) await play(statement)
  assert.deepEqual(await play(SHOW_TIMES), [
    {
      whole: '2020-01-02T03:04:05.000Z',
      micro: '2020-01-02T03:04:05.678Z',
      east: '2020-01-02T03:04:05.600Z',
      none: null,
      never: 'infinity',
    },
  ])
}

const SHOW_TIMES: Query<Record<string, string | null>> = {
  name: 'show-times',
  text: `
    select
      '2020-01-02 03:04:05+00'::timestamptz as whole, '2020-01-02 03:04:05.678901+00'::timestamptz as micro,
      '2020-01-02 08:34:05.6+05:30'::timestamptz as east, null::timestamptz as none, 'infinity'::timestamptz as never`,
  values: [],
}

const ORIGIN = { ip: '2001:db8::1', userAgent: TEXT, requestId: TEXT }
const LIMIT = { action: 'login', limit: 2, windowSeconds: 60 }
const hash = (letter: string): string => letter.repeat(64)

const stored = (n: number, letter: string) => ({
  ...{ id: id(n), secretHash: createHash('sha256').update(TEXT).digest('hex') },
  ...{ tokenHash: hash(letter), days: 30 },
})

const playAccounts = async ({ play }: Stage): Promise<void> => {
  const account = { ...TENANT, username: 'ada', passwordHash: TEXT, invitationHash: null }
  await play(registerAccount(account, stored(3, 'a'), ORIGIN))
  const taken = { ...account, userId: id(4), orgId: id(5), username: 'ADA' }
  await play(registerAccount(taken, stored(4, 'a'), ORIGIN))
  await play(findUser('Ada'))
  await play(nameOf(TENANT.userId))
  await play(listUsers({ after: null, limit: 10 }))
  for (const username of ['Ada', TEXT, 'ada']) {
    await play(beginSignIn(LIMIT, { username, ip: '2001:db8:1:2:3::4' }))
    await play(hitRateLimit(LIMIT, '::ffff:10.0.0.1'))
  }
  const user = { username: 'Ada', passwordHash: TEXT, spareOrgId: id(8) }
  await play(startSession(user, stored(6, 'b'), ORIGIN))
  await play(auditFailedSignIn('Ada', ORIGIN))
  await play(endSession(hash('b'), ORIGIN))
  await play(startSession(user, stored(61, '1'), ORIGIN))
  await play(endOwnSessions({ id: id(61), userId: TENANT.userId, others: false }))
  await play(startSession(user, stored(62, '2'), ORIGIN))
  await play(endOwnSessions({ id: id(3), userId: TENANT.userId, others: true }))
  await play(listSessions({ userId: TENANT.userId, before: null, limit: 10 }))
  const change = { orgId: TENANT.orgId, sessionId: id(3), from: TEXT, to: 'other', revokeKeys: true }
  await play(changePassword(change))
}

/** Scopes last for a transaction, and these have none around them: what they answer is what counts here. */
const playScopes = async ({ play }: Stage): Promise<void> => {
  const member = { ...TENANT, sessionId: id(3), keyId: null, secret: TEXT }
  await play(enter(member, { leastRole: 'user', origin: ORIGIN }))
  const rotation = { presentedHash: hash('a'), successorHash: hash('c'), days: 30 }
  await play(rotateRefreshToken({ ...rotation, graceSeconds: 10 }, ORIGIN))
  await play(rotateRefreshToken({ ...rotation, graceSeconds: 10 }, ORIGIN))
  await play(rotateRefreshToken({ ...rotation, graceSeconds: null }, ORIGIN))
  const user = { username: 'Ada', passwordHash: TEXT, spareOrgId: id(8) }
  await play(startSession(user, stored(63, '7'), ORIGIN))
  await play(takeTurns('api-keys', TENANT.orgId))
  await play(findRowSecurityFault(FUNCTIONS_ROLE))
}

const playOrgs = async ({ play }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  const page = { after: null, limit: 10 }
  await play(createOrg({ id: id(7), name: TEXT, limit: 5 }))
  await play(getOrg(orgId, userId))
  await play(listOrgs({ userId, everybodys: true, ...page }))
  await play(switchOrg({ orgId: id(7), userId, sessionId: id(3) }))
  const key = { id: id(9), orgId, userId, name: TEXT, prefix: 'sqk_1', hash: hash('d') }
  await play(createApiKey({ ...key, scopes: ['jobs:read', TEXT], expiresAt: '2999-01-01T00:00:00Z' }))
  await play(listApiKeys({ orgId, userId: null, ...page }))
  await play(findApiKey(hash('d')))
  await play(revokeApiKey({ id: id(9), orgId, userId }))
  const link = { orgId, role: 'user' as const, invitedBy: userId }
  await play(createInvitation({ ...link, id: id(31), username: null, tokenHash: hash('e') }))
  await play(createInvitation({ ...link, id: id(32), username: null, tokenHash: hash('f') }))
  await play(createInvitation({ ...link, id: id(33), username: 'nobody', tokenHash: null }))
  await play(listInvitations({ orgId }, page))
  await play(listInvitations({ userId }, page))
  await play(acceptInvitation({ id: id(31), tokenHash: hash('e') }))
  const guest = { userId: id(34), username: 'grace', passwordHash: TEXT, orgId: id(36) }
  const session = { id: id(35), secretHash: hash('3'), tokenHash: hash('3'), days: 30 }
  for (const username of ['ADA', 'grace']) {
    const invited = { ...guest, username, invitationHash: hash('f') }
    await play(registerAccount(invited, session, ORIGIN))
  }
  await play(revokeInvitation(orgId, id(32)))
  await play(listMembers({ orgId, ...page }))
  await play(changeMember({ orgId, userId, role: 'user' }))
  await play(changeMember({ orgId, userId, role: null }))
  await play(getQuotas(orgId))
  await play(setQuotas(orgId, { running_jobs: null, queued_jobs: Number.MAX_SAFE_INTEGER, weight: 0.3 }))
  await play(getQuotas(orgId))
  await play(listAuditLog({ orgId, action: null, before: null, limit: 50 }))
}

const playSubmission = async ({ play }: Stage): Promise<void> => {
  await play(registerJobTypes([{ type: 'test', payload_schema: { type: 'object', title: TEXT } }]))
  await play(listJobTypes({ after: null, limit: null }))
  const jobs = [
    newJob({ id: id(11), name: TEXT, payload: PAYLOAD, tags: ['a,b', TEXT], priority: 'high' }),
    newJob({ id: id(12), run_at: '2020-01-01T00:00:00+01:00', timeout_seconds: 5 }),
    newJob({ id: id(13), run_at: '2999-12-31T23:59:59.123Z', backoff_multiplier: 1.25 }),
    newJob({ id: id(14), max_attempts: 1, cpu_units: 0.5, deadline: '2020-01-01T00:00:00Z' }),
    newJob({ id: id(15), depends_on: [id(11), id(14)], on_parent_failure: 'wait' }),
    newJob({ id: id(16), cpu_units: 4, memory_mb: 128, priority: 'low' }),
  ]
  await play(submitJobs([{ ...TENANT, jobs }]))
  await play(
    submitJobs([
      { ...TENANT, jobs: [newJob({ id: id(19), type: 'other', payload: PAYLOAD, tags: [TEXT] })] },
    ]),
  )
  for (const [n, run_at] of [null, '2999-12-31T23:59:59.123Z'].entries()) {
    const lone = newJob({ id: id(20 + n), type: 'other', payload: PAYLOAD, tags: ['a,b', TEXT], run_at })
    await play(submitJobs([{ ...TENANT, jobs: [lone] }]))
    const predicted = { ...lone, id: id(60 + n), prediction: PREDICTION }
    await play(submitJobs([{ ...TENANT, jobs: [predicted] }]))
    const traced = { ...predicted, id: id(50 + n), traceparent: TRACEPARENT }
    await play(submitJobs([{ ...TENANT, jobs: [traced] }]))
    const others = [
      { ...predicted, id: id(70 + n), traceparent: TRACEPARENT },
      { ...lone, id: id(80 + n) },
    ]
    await play(submitJobs([{ ...TENANT, jobs: others }]))
    const keyed = { ...lone, id: id(30 + n) }
    const keys = [{ key: `${TEXT} ${n}`, bodyHash: hash('a'), jobIds: [keyed.id] }]
    await play(submitJobs([{ ...TENANT, jobs: [{ ...lone, id: id(40 + n) }] }]))
    await play(submitJobs([{ ...TENANT, jobs: [keyed], keys }]))
    await play(submitJobs([{ ...TENANT, jobs: [keyed], keys }]))
  }
  await play(
    submitJobs([
      { ...TENANT, jobs: [newJob({ id: id(17), depends_on: [id(99)] })] },
      { ...TENANT, userId: id(99), jobs: [newJob({ id: id(18) })] },
    ]),
  )
}

const playExecution = async ({ play, sql }: Stage): Promise<void> => {
  const claim = { limit: 3, order: 'age' } as const
  const { claimed } = await exchange(play, { workerId: 'w', claim })
  const [first, second, third] = claimed
  assert.ok(first && second && third)
  await play(renewLeases([first.token, '999'], 30))
  await play(reportSlowJobs([first, { ...second, token: '999' }]))
  const lines = [1, 2].map((n) => ({
    ...first,
    at: '2026-01-01T00:00:00Z',
    level: 'info',
    message: `${n} ${TEXT}`,
  }))
  await play(appendJobLogs(JSON.stringify(lines)))
  await play(listJobLogs({ ...TENANT, jobId: first.job_id, after: null, limit: 10 }))
  const report = { progress: 0.1, note: TEXT, checkpoint: PAYLOAD, has_checkpoint: true }
  await play(saveProgress(JSON.stringify([{ ...report, job_id: second.job_id, token: second.token }])))
  const key = (job: ClaimedJob) => ({ ...held(job), ranMs: 12.5 })
  await exchange(play, {
    workerId: 'w',
    ended: [
      { ...key(first), outcome: 'completed', resultJson: JSON.stringify(PAYLOAD) },
      { ...key(second), outcome: 'failed', error: { code: 'broken', message: TEXT }, permanent: false },
      { ...key(third), token: '999', outcome: 'completed', resultJson: null },
    ],
  })
  await play(releaseJobs([third], TEXT))
  await sql(
    `update smartqueue.attempts set finished_at = started_at + interval '20 ms' where outcome = 'given_back'`,
  )
  for (const how of [{ newestRank: true }, { fifo: true }])
    await exchange(play, { claim: { ...how, limit: 0 } })
}

const playLeaderDuties = async ({ play, sql }: Stage): Promise<void> => {
  const [begun] = await play(beginTerm('w'))
  const term = begun?.term ?? ''
  await play(lookOut())
  await play(wakeDueJobs(term, 10))
  // Handed a retried job, with its checkpoint and a waiting child, and one that fails with its worker.
  await exchange(play, { workerId: 'w', claim: { limit: 2 } })
  await sql('update smartqueue.leases set expires_at = now()')
  await play(reclaimExpiredLeases(term, 10))
  await play(takeMovedSeries(term, 10))
  const seriesIds = (await sql<{ id: string }>('select id from smartqueue.series order by id')).map(
    (row) => row.id,
  )
  await sql('update smartqueue.series set mean_log = 3')
  await play(rescoreJobs({ term, seriesIds, after: SWEEP_START, limit: 10 }))
  await playLearning({ play, sql }, term)
  for (const kind of EXPIRING) await play(deleteExpired(kind, { term, days: 30, limit: 10 }))
  await play(forgetIdleSeries({ term, days: 30, afterId: '0', limit: 10 }))
  await play(deleteStale(term, 30))
}

const playDeletion = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  for (const { page } of ORG_EXPORT) await play(page(orgId, null))
  for (const { page } of ACCOUNT_EXPORT) await play(page(userId, null))
  await play(listOwnOrgs())
  // Nobody has entered; only the equality of the answers matters here.
  const deletion = { name: TEXT, passwordHash: TEXT, sessionId: id(3), spareOrgId: id(41) }
  await play(deleteOrg({ ...deletion, orgId }))
  await play(deleteOrg({ ...deletion, orgId: id(42) }))
  await play(deleteAccount(TEXT))
  await sql(`insert into smartqueue.org_deletions (id, request_id, requested_at) values ($1, $2, 'epoch')`, [
    id(7),
    TEXT,
  ])
  const [leader] = await sql<{ term: string }>('select term from smartqueue.scheduler_leader')
  await play(removeDeletedOrg(leader?.term ?? '', 500))
  await play(listOrgDeletions({ after: null, limit: 10 }))
}

const playLearning = async ({ play, sql }: Stage, term: string): Promise<void> => {
  const [series] = await sql<{ id: string; org_id: string }>(
    'select id, org_id from smartqueue.series order by id limit 1',
  )
  assert.ok(series)
  const estimate = { runs: 3, mean_log: 1 / 3, deviation_log: 1e-7, median_log: 2 / 3 }
  const memory = btoa('\0\xff')
  const accuracy = {
    errors: { smartqueue: 1 / 3, series: 1e-7 },
    coverage: 0.9,
    mape: 12.5,
    drift: 0.1,
    executions: 7,
  }
  // Transactions have other numbers in the other database.
  const none = { xid: '0', id: '0' }
  const learned = {
    ...{ term, from: none, to: { xid: '7', id: '9' }, learned: 5, bySource: { lstm: 5 }, accuracy },
    series: [{ id: series.id, memory }],
    orgs: [{ id: series.org_id, memory }],
    types: [{ ...estimate, type: TEXT }],
    orgTypes: [{ ...estimate, drift_log: -0.25, org_id: series.org_id, type: TEXT, memory }],
    isPoint: true,
  }
  await play(getLearningState(term))
  await play(storeLearned(learned))
  await play(storeLearned(learned))
  await play(recallSeries([series.id]))
  await play(recallOrgTypes([{ org: series.org_id, type: TEXT }]))
  await play(recallOrgs([series.org_id]))
  await play(recallTypes())
  await play(forgetTypes(term))
  // The oldest of all, with numbers of its own.
  await sql(`insert into smartqueue.executions (xid, id, org_id, series_id, at, outcome, job_ids, ran_ms)
    overriding system value
    select '1', 1, org_id, series_id, 'epoch', 'timed_out', array[id, gen_random_uuid()], array[1.5, 1e6]
    from smartqueue.jobs order by id limit 1`)
  await play(readExecutions(none, 1))
  await play(recallExecutions({ xid: '1', id: '1' }, 10))
  await playModels({ play, sql }, term, accuracy)
  await sql(
    'truncate smartqueue.models, accuracy_points, series_memories, org_memories, org_type_estimates, type_estimates',
  )
}

const playModels = async ({ play, sql }: Stage, term: string, accuracy: AccuracyValues): Promise<void> => {
  await sql('truncate smartqueue.models')
  const weights = btoa('\0\xff')
  const evaluation = { executions: 7, before: 1 / 3, after: 1e-7, z: 3, kind: 'promoted' }
  await play(crownModel({ term, version: 101, weights }))
  const challenger = { term, version: 102, against: 101, evaluation, trainedOn: 7, onlyOrg: null }
  await play(storeChallenger({ ...challenger, promoted: true, weights, accuracy }))
  await play(storeChallenger({ ...challenger, promoted: true, weights, accuracy }))
  await play(rollBackModel({ term, version: 102, against: 101, evaluation }))
  const rejected = { promoted: false, weights: null, accuracy: undefined }
  await play(storeChallenger({ ...challenger, version: 103, ...rejected }))
  await play(listModels())
}

const playRegistry = async ({ play, sql }: Stage): Promise<void> => {
  const worker = {
    status: 'online',
    types: ['test', 'other'],
    slots: 4,
    cpuUnits: 4.5,
    memoryMb: 512,
  } as const
  await play(reportWorker({ ...worker, workerId: 'w', hostname: TEXT, running: 1, jobsProcessed: 2 ** 40 }))
  await play(askForWork('w'))
  await play(lookOut())
  const [begun] = await play(beginTerm('w'))
  const term = begun?.term ?? ''
  await sql(`update smartqueue.ready_jobs set ready_at = now() - interval '1 minute'`)
  await play(reserveCapacity(term, 5))
  await play(askToIsolate(term))
  await play(claimSuspect({ workerId: 'w', leaseSeconds: 30, types: ['nothing'], cpuUnits: 1, memoryMb: 64 }))
  await play(endIsolation('w'))
  await sql('insert into smartqueue.pauses (org_id) values ($1)', [TENANT.orgId])
  await play(lookOut())
  await play(moveHeldBackJobs({ term, parked: false, after: SWEEP_START, limit: 10 }))
  await sql('delete from smartqueue.pauses')
  await play(moveHeldBackJobs({ term, parked: true, after: SWEEP_START, limit: 10 }))
  await sql(`update smartqueue.workers set last_seen = now() - interval '1 minute'`)
  await play(markSilentWorkers(term))
}

const playActions = async ({ play }: Stage): Promise<void> => {
  const { orgId } = TENANT
  await play(cancelJobs(orgId, [id(13), id(16), id(99)]))
  await play(retryJobs(orgId, [id(16), id(14), id(99)]))
  await play(pauseQueue(orgId, null))
  await play(pauseQueue(orgId, 'test'))
  await play(getQueue(orgId))
  await play(listOrgQueues(10))
  await play(resumeQueue(orgId, null))
  await play(resumeQueue(orgId, 'test'))
}

const playLists = async ({ play }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  for (let n = 11; n <= 16; n++) await play(getJob(orgId, id(n)))
  await play(getJob(id(5), id(11)))
  await play(findSubmitted(orgId, [id(14), id(99)]))
  await play(findIdempotencyKeys(orgId, [`${TEXT} 0`]))
  await play(findJobOrg(id(11)))
  await play(listJobs({ orgId: null, filter: { tag: TEXT }, before: null, limit: 2 }))
  const filters: JobFilter[] = [
    {},
    { statuses: ['ready', 'running', 'failed', 'cancelled'] },
    { type: 'test', name: TEXT },
    { tag: TEXT, priority: 'high', created_by: userId },
    { text: TEXT },
    { text: id(11), statuses: ['ready', 'failed'] },
    { created_after: new Date('2020-01-01'), created_before: new Date('2999-01-01') },
  ]
  for (const filter of filters) {
    await play(listJobs({ orgId, filter, before: null, limit: 2 }))
    await play(findJobs({ orgId, filter, before: id(14), limit: 10 }))
  }
  await play(listAttempts({ orgId, jobId: id(12), after: null, limit: 10 }))
  await play(listDeadLetters({ orgId, after: null, limit: 10 }))
  await play(listDeadLetters({ orgId, type: 'test', name: TEXT, after: null, limit: 10 }))
  await play(listWorkers(null, { after: null, limit: 10 }))
  await play(listWorkers(orgId, { after: null, limit: 10 }))
  await play(listJobTypes({ after: null, limit: 10 }))
  for (let n = 11; n <= 16; n++) await play(getJobGraph(orgId, id(n), 3))
  await play(getLeader())
  await play(listPodLoads())
}

const playSchedules = async ({ play }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  const [begun] = await play(beginTerm('w'))
  const term = begun?.term ?? ''
  const job = newScheduledJob({ name: TEXT, payload: PAYLOAD, tags: ['a,b', TEXT] })
  const plan = { name: TEXT, cron: '0 0 * * *', timezone: TEXT, catch_up: 'one' as const, job }
  const nextAt = '2020-01-01T00:00:00.000Z'
  const made = { ...plan, created_by: userId }
  await play(createSchedule(orgId, { ...made, id: id(91), paused: false, next_at: nextAt }))
  await play(createSchedule(orgId, { ...made, id: id(92), paused: true, next_at: null }))
  await play(listSchedules({ orgId, after: id(90), limit: 10 }))
  const [found] = await play(findDueSchedules({ term, withinMs: 1e-7, limit: 10 }))
  assert.ok(found)
  await play(holdSchedule(term, found))
  const ticks = [
    { tick_at: new Date(nextAt), job_id: id(93), outcome: 'fired' as const, reason: null },
    { tick_at: new Date('2020-01-02'), job_id: null, outcome: 'skipped' as const, reason: TEXT },
  ]
  await play(recordTicks(found, ticks, { next: new Date(nextAt), skipped: 2 ** 40, suspend: false }))
  await play(holdSchedule(term, found))
  await play(recordTicks(found, ticks, { next: null, skipped: 0, suspend: true }))
  await play(listTicks({ orgId, scheduleId: id(91), before: null, limit: 2 }))
  await play(listTicks({ orgId, scheduleId: id(91), before: nextAt, limit: 2 }))
  const read = { orgId, id: id(91), version: '2' }
  await play(changeSchedule(read, { ...plan, paused: false, next_at: nextAt }, ['paused', TEXT]))
  await play(changeSchedule(read, { ...plan, paused: false }, []))
  await play(getSchedule(orgId, id(91)))
  await play(auditScheduleRun(orgId, id(91), id(93)))
  await play(deleteSchedule(orgId, id(91)))
}

const playWebhooks = async ({ play }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  const source = { id: id(94), created_by: userId, name: TEXT, scheme: 'hmac' as const, secret: TEXT }
  const rules = { verification: { prefix: TEXT }, filter: { path: '$', eq: TEXT }, template: PAYLOAD }
  await play(createSource(orgId, { ...source, ...rules, enabled: true }))
  await play(listSources({ orgId, after: id(90), limit: 10 }))
  await play(changeSource(orgId, id(94), { name: `${TEXT}!`, filter: null }))
  await play(rotateSecret({ orgId, id: id(94), secret: `${TEXT}!`, keepPreviousSeconds: 60 }))
  await play(getSource(orgId, id(94)))
  await play(enterWithSource({ id: id(94), version: '3', secret: `${TEXT}!` }, ORIGIN))
  await play(findReceivingSource(id(94), null))
  await play(findReceivingSource(id(94), orgId))
  const event = { orgId, sourceId: id(94), eventId: TEXT, eventType: TEXT }
  const kept = { headers: JSON.stringify({ x: TEXT }), body: JSON.stringify(PAYLOAD) }
  const keys = { event: { key: TEXT, keepSeconds: 9 }, job: { key: 'other', bodyHash: hash('a') } }
  const first = { ...event, ...kept, id: id(95), replayOf: null }
  await play(journalDelivery(first, { jobId: id(11), keys, otherwise: null }))
  const otherwise = { status: 'quarantined' as const, reason: TEXT }
  const again = { ...first, id: id(96), replayOf: id(95) }
  await play(journalDelivery(again, { jobId: null, keys: { event: null, job: null }, otherwise }))
  await play(takeTurns('webhook-rejections', id(94)))
  await play(journalRejection({ ...first, id: id(97), body: null }, TEXT))
  await play(listDeliveries({ orgId, sourceId: id(94), status: null, before: null, limit: 2 }))
  await play(listDeliveries({ orgId, sourceId: id(94), status: 'quarantined', before: null, limit: 2 }))
  await play(getDelivery(orgId, id(95)))
  const [begun] = await play(beginTerm('w'))
  await play(deleteExpired('deliveries', { term: begun?.term ?? '', days: 30, limit: 10 }))
  await play(deleteSource(orgId, id(94)))
}

const AUTOSCALE_SNAPSHOT = `insert into smartqueue.autoscale_snapshots (queued_seconds, running_seconds, arriving_per_second,
    scheduled_seconds, workers, slots_per_worker, drain_goal_seconds, lead_seconds, min_workers, max_workers)
  values (100, 1e-7, 0.5, 0, 2, 10, 60, 75, 1, 5)`

const playPredictions = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId } = TENANT
  await sql(`update smartqueue.workers set last_seen = now(), status = 'online'`)
  await sql(
    `insert into smartqueue.series_memories (series_id, org_id, memory) select id, org_id, '\\x00ff' from smartqueue.series`,
  )
  await sql(
    `insert into smartqueue.models (version, status, weights, trained_on) values (3, 'champion', '\\x0102', 9)`,
  )
  await sql(
    `insert into smartqueue.accuracy_points (accuracy) values ('{"executions": 9, "errors": {"series": 0.25}, "coverage": 0.875}')`,
  )
  await play(refreshQueueSums())
  await play(
    getPredictionInputs(orgId, [
      { type: 'test', name: TEXT },
      { type: 'other', name: 'none' },
    ]),
  )
  await play(getModelWeights(3))
  await play(countFaults('timeout', 2 ** 40))
  await play(getModelCard())
  await play(getEtaAccuracy(orgId, { share: 0.5, ms: 1e-7 }))
  await play(addEdgeTotals([{ name: 'duplicates', label: '', total: 2 ** 40 }]))
  await play(readMetrics())
  await sql(AUTOSCALE_SNAPSHOT)
  await play(readAutoscale())
  for (let n = 11; n <= 16; n++) {
    await play(readJobs(orgId, [id(n)], { most: 2, withQueue: true }))
    await play(getObstacles(orgId, id(n)))
  }
}

const playCallbacks = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  const [begun] = await play(beginTerm('teller'))
  const term = begun?.term ?? ''
  const endpoint = { id: id(90), orgId, userId, url: TEXT, events: ['job.cancelled' as const] }
  await play(createEndpoint(endpoint))
  await play(createEndpoint(endpoint))
  await play(getEndpoint(orgId, id(90)))
  await play(changeEndpoint({ ...endpoint, url: null, disabled: true }))
  await play(changeEndpoint({ ...endpoint, events: null, disabled: false }))
  await play(disableCallbackUrl({ id: id(91), orgId, url: 'https://example.com/gone', reason: TEXT }))
  await play(listEndpoints({ orgId, after: null, limit: 10 }))
  await play(getCallbackSecret(orgId))
  await play(findCallbackAddress(orgId, TEXT))
  await play(rotateCallbackSecret(orgId, 60))
  await play(getCallbackSecret(orgId))
  await play(findCallbackAddress(orgId, 'https://example.com/gone'))
  const jobs = [newJob({ id: id(92), callback_url: 'https://example.com/', run_at: '2999-01-01T00:00:00Z' })]
  const start = { xid: '0', id: '0', position: 0 }
  await sql(`delete from smartqueue.job_event_groups`)
  await play(submitJobs([{ ...TENANT, jobs }]))
  await play(cancelJobs(orgId, [id(92)]))
  // Of a transaction that is over on the whole server, whatever else runs there.
  await sql(`update smartqueue.job_event_groups set xid = '3', at = '2999-01-01', ats = '{2999-01-01}'`)
  const [page] = await play(findCallbacks(start, { events: 10, callbacks: 10 }))
  assert.equal(page?.events.length, 1)
  const [cursor] = await play(getCallbackCursor())
  assert.ok(cursor)
  await play(
    moveCallbackCursor(term, cursor, { xid: '18446744073709551615', id: '9007199254740993', position: 7 }),
  )
  await play(getCallbackCursor())
  await play(restartCursors(term, ['callbacks']))
  await play(restartCursors(term, ['callbacks']))
  const triggered_by = { kind: 'callback' as const, job_id: id(92), event: 'job.cancelled' }
  const callback = newJob({ id: id(93), type: 'callback', payload: { url: TEXT }, triggered_by })
  await play(submitJobs([{ orgId, userId: null, jobs: [callback] }], { charged: false }))
  await play(listJobCallbacks({ orgId, jobId: id(92), after: null, limit: 10 }))
  await play(deleteExpired('disabled_urls', { term, days: 0, limit: 10 }))
  await play(deleteEndpoint(orgId, id(90)))
}

const playStream = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  await play(enterStream(orgId, [{ userId, sessionId: id(3), keyId: null, secret: TEXT }]))
  await sql('delete from smartqueue.job_event_groups')
  // Of a transaction that is over on the whole server, whatever else runs there.
  await sql(
    `insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats, at, xid)
    values ($1, array[$2::uuid, $2], '{completed,failed}', '{1}', array[null, $3], '{}', '2020-01-01', '3')`,
    [orgId, id(11), TEXT],
  )
  const [{ incarnation } = { incarnation: '' }] = await sql<{ incarnation: string }>(
    'select smartqueue.database_incarnation() as incarnation',
  )
  const start = { incarnation, xid: '0', id: '9007199254740993', position: 0 }
  await sql(`update smartqueue.stream_floor set xid = '0'`)
  const limits = { events: 1, groups: 2, behind: 5 }
  const [page] = await play(readStream(orgId, [{ ...start, xid: '1' }, start, null], limits))
  assert.deepEqual([page?.events.length, page?.behind], [1, 2])
  await play(followJob({ orgId, jobId: id(11), after: null, limit: 2 }))
  await play(followJob({ orgId, jobId: id(11), after: '0', limit: 2 }))
}

const playAnalytics = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId } = TENANT
  const [begun] = await play(beginTerm('the analyst'))
  const term = begun?.term ?? ''
  // What was played before was committed at different moments.
  await sql(`update smartqueue.event_cursors set xid = pg_snapshot_xmin(pg_current_snapshot())`)
  await play(restartCursors(term, ['rollups', 'gains']))
  await play(findUncounted())
  await play(rollUp('0', { groups: 10, jobs: 10 }))
  // As if the hour had just begun.
  await play(sampleDepths(term, 1e9))
  await play(measureStretch({ rows: 10, jobs: 10 }))
  await play(readStretch({ rows: 10, jobs: 10 }, { xid: '0', id: '0' }))
  await play(readCapacity(0))
  const place = { xid: '0', id: '0' }
  const gain = {
    at_ms: Date.now(),
    jobs: 1,
    wait_ms: 1.5,
    fifo_wait_ms: 2,
    max_wait_ms: 1,
    fifo_max_wait_ms: 2,
  }
  await sql(`update smartqueue.event_cursors set xid = '0', id = 0 where reader = 'gains'`)
  await play(storeGains(term, place, place, [{ org_id: orgId, ...gain }]))
  await sql(
    `insert into smartqueue.prediction_rollups values ($1, '', date_trunc('hour', now()), 2, 0.5, 0.5, 1, 1, 2, '{0,2}')
    on conflict do nothing`,
    [orgId],
  )
  // They may be a second old.
  await sql('delete from smartqueue.queue_snapshots')
  await play(getSummary(orgId))
  const buckets = { span: 3600, seconds: 3600, count: 24 } as const
  await play(getThroughput(orgId, buckets))
  await play(getPredictionAccuracy(orgId, null, buckets))
  await play(getQueueDepth(orgId, buckets))
  await play(getSchedulingGain(orgId, buckets))
}

const playAutoscale = async ({ play, sql }: Stage): Promise<void> => {
  const { orgId, userId } = TENANT
  const [begun] = await play(beginTerm('w'))
  const term = begun?.term ?? ''
  const job = newScheduledJob({ name: TEXT })
  const plan = { name: TEXT, cron: '0 0 * * *', timezone: TEXT, catch_up: 'one' as const, job }
  const nextAt = '2020-01-01T00:00:00.000Z'
  const made = { ...plan, id: id(98), created_by: userId, paused: false, next_at: nextAt }
  await play(createSchedule(orgId, made))
  await sql(
    `insert into smartqueue.load_forecasts (from_at, p50_ms, p90_ms) values (now(), '{60000, 60000}', '{1e5, 1e5}')`,
  )
  await sql('delete from smartqueue.queue_snapshots')
  const settings = {
    slots_per_worker: 10,
    drain_goal_seconds: 60,
    lead_seconds: 75,
    min_workers: 1,
    max_workers: 5,
  }
  await play(findNearTicks(term, settings, { limit: 10, defaultLog: 7 }))
  await play(takeAutoscaleSnapshot({ term, settings, ticksSeconds: 1 / 3 }))
  await sql(
    'update smartqueue.autoscale_snapshots set running_seconds = 1.5e-7, forecast_p50_seconds = 0.5, forecast_p90_seconds = null',
  )
  await play(readAutoscale())
}

const playLoad = async ({ play, sql }: Stage): Promise<void> => {
  const [begun] = await play(beginTerm('l'))
  assert.ok(begun)
  const { term } = begun
  await sql(`insert into smartqueue.load_minutes (at, jobs, work_ms)
    select date_trunc('day', now()) - ago, 3, 1e7 / 3
    from unnest('{1 day,2 days,40 days}'::interval[]) as ago`)
  await play(readLoad(null))
  await play(readLoad(2 ** 31 - 1))
  const forecast = { term, fromMinute: 29_000_000.0, p50Ms: [0, 1 / 3, 1e12], p90Ms: [1e-7, 2, 3] }
  await play(storeForecast(forecast))
  await play(recallForecaster(term))
  const evaluation = { minutes: 7, errors: { lstm: 1 / 3 } }
  await play(storeForecaster({ term, unusableBecause: TEXT, evaluation, forecaster: null }))
  await play(storeForecaster({ term, unusableBecause: null, evaluation, forecaster: btoa('\0\xff') }))
  await play(recallForecaster(term))
  await play(storeForecast(forecast))
}

/** In order: each goes on from what the one before left. A new area is one more function. */
const SCENARIO = [
  playOperations,
  playAccounts,
  playScopes,
  playOrgs,
  playSubmission,
  playExecution,
  playLeaderDuties,
  playRegistry,
  playActions,
  playLists,
  playSchedules,
  playWebhooks,
  playPredictions,
  playCallbacks,
  playStream,
  playAnalytics,
  playAutoscale,
  playLoad,
  playDeletion,
]

/** The answers by statement, with what differs by nature put aside. */
const playScenario = async (run: Run, database: TestDatabase): Promise<Map<string, unknown[]>> => {
  const answers = new Map<string, unknown[]>()
  const play: Run = async <Row>(query: Query<Row>): Promise<Row[]> => {
    const rows = await run(query)
    answers.set(query.name, [...(answers.get(query.name) ?? []), rows.map(stable)])
    return rows
  }
  for (const area of SCENARIO) await area({ play, sql: database.sql })
  return answers
}

/**
 * The database's clock differs between two runs; that a time is there, and its type, must not. Who tells the workers of a
 * submission depends on the moment.
 */
const BY_THE_MOMENT = [
  ...[
    'announced',
    'age_ms',
    'took_ms',
    'running_ms',
    'ran_ms',
    'runtime_ms',
    'newest_job_id',
    'xid',
    'newest',
  ],
  ...[
    'age_seconds',
    'oldest_ready_seconds',
    'in_seconds',
    'at_ms',
    'recent_loads',
    'silent_seconds',
    'used',
    'load',
  ],
  ...['this_minute', 'end_minute', 'seconds_into'],
  // Made by the database.
  ...['secret', 'previous_secret', 'hint', 'incarnation'],
]

/** Of a column; within JSON, Postgres writes more digits and an offset. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const stable = (value: unknown): unknown => {
  assert.ok(!(value instanceof Date), 'times come as text')
  const thisYear = new Date().getUTCFullYear()
  if (typeof value === 'string' && ISO_TIME.test(value) && value.startsWith(`${thisYear}-`)) return 'now'
  if (typeof value === 'string' && value.startsWith(`${thisYear}-`)) return 'now as text'
  if (typeof value === 'string' && /^\{"type" ?:/.test(value)) return stable(JSON.parse(value))
  if (typeof value === 'string' && /^1[89]\d{14}$/.test(value)) return 'now in microseconds'
  if (typeof value === 'string' && /^[12]\d{18}$/.test(value)) return 'now in a token'
  if (Array.isArray(value)) return value.map(stable)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([key]) => !BY_THE_MOMENT.includes(key))
  return Object.fromEntries(entries.map(([key, child]) => [key, stable(child)]))
}

test('every statement answers the same over HTTP from workerd and over TCP', async () => {
  const runFromWorkerd: Run = async (query) => {
    const answer = await edge.request('POST', '/', { json: query })
    assert.equal(answer.status, 200, `${query.name}: ${answer.text}`)
    return JSON.parse(answer.text)
  }
  const expected = await playScenario(overTcp.run, overTcp)
  const actual = await playScenario(runFromWorkerd, overHttp)
  assert.deepEqual(actual, expected)

  const played = [...expected.keys()]
  for (const name of await everyStatementName()) {
    const plays = played.some((other) => other === name || other.startsWith(`${name}-`))
    assert.notEqual(plays, [...TCP_ONLY, ...OWNER_ONLY].includes(name), `the scenario plays ${name}`)
  }
})

/** Names as they stand in the sources, as far as they are fixed: a new statement must join the scenario. */
const everyStatementName = async (): Promise<string[]> => {
  const sources = await Promise.all(globSync('db/*/*.ts').map((file) => readFile(file, 'utf8')))
  const names = sources.flatMap((source) => [...source.matchAll(/\bname: ['`]([\w-]+)/g)])
  assert.ok(names.length > 40)
  return names.map(([, name]) => name ?? '')
}
