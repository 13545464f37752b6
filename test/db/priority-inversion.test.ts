import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Claim } from '../../db/queue/exchange.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { PRIORITIES, type Priority } from '../../db/rules/priority.ts'
import { createCapacity } from '../../worker-runtime/capacity.ts'
import type { ClaimPlanner } from '../../worker-runtime/claim-planner.ts'
import { createClaimPlanner } from '../../worker-runtime/claim-planner.ts'
import type { HeldJob, HeldJobs } from '../../worker-runtime/held-jobs.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, completed, exchange, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const WEIGHTS: Record<Priority, number> = { critical: 64, high: 8, normal: 1, low: 1 / 8 }

type Arrival = { atMs: number; priority: Priority; name: string; runMs: number }

/** Seeded, so that every policy gets the same jobs. */
const randomSource = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

const JOBS = 160
const RUN_MS = { short: 1_000, long: 10_000 }

/**
 * Jobs for one worker that they keep as busy as can be. Whatever the class, one in five runs ten times as long as the
 * others.
 */
const arrivals = (seed: number): Arrival[] => {
  const random = randomSource(seed)
  let atMs = 0
  return Array.from({ length: JOBS }, () => {
    atMs += -Math.log(1 - random()) * 2_900
    const draw = random()
    const priority: Priority = draw < 0.25 ? 'high' : draw < 0.8 ? 'normal' : 'low'
    const length = random() < 0.2 ? 'long' : 'short'
    const runMs = RUN_MS[length] * Math.exp(0.2 * (random() - 0.5))
    return { atMs, priority, name: `${priority} ${length}`, runMs }
  })
}

/** What has run before is known. */
const seedEstimates = async (): Promise<void> => {
  for (const priority of PRIORITIES) {
    for (const [length, runMs] of Object.entries(RUN_MS)) {
      await database.sql(
        `insert into series (org_id, type, name, runs, mean_log, deviation_log, scored_log)
        values ($1, 'test', $2, 20, ln($3::float), 0.1, ln($3::float))`,
        [tenant.orgId, `${priority} ${length}`, runMs],
      )
    }
  }
}

/** How claims are made, and what the queue orders jobs by. */
type Policy = {
  terms: (priority: Priority) => Partial<NewJob>
  plan: () => Partial<Claim>
  observe?: (exchanged: Parameters<ClaimPlanner['observe']>[0]) => void
  ended?: (ranMs: number) => void
}

/** The class decides alone, and within it the arrival. */
const strict: Policy = {
  terms: (priority) => ({ rank_base: PRIORITIES.indexOf(priority), rank_slope: 0 }),
  plan: () => ({}),
}

/** The planner of a real worker with one slot, and the rank that jobs have. */
const learned = (now: () => number): Policy => {
  const planner = createClaimPlanner({
    types: ['test'],
    policy: 'learned',
    capacity: createCapacity({ slots: 1, cpuUnits: 1, memoryMb: 1_000 }),
    jobs: () => ({ unstarted: () => 0, held: (): HeldJob[] => [] }) as HeldJobs,
    now,
  })
  return {
    terms: () => ({}),
    plan: () => planner.plan({ stopping: false, recording: false }),
    observe: planner.observe,
    ended: planner.attemptEnded,
  }
}

type Wait = Arrival & { waitMs: number }

/** One worker that runs one job at a time, with the statements of a real one and a clock of its own. */
const simulate = async (seed: number, policyOf: (now: () => number) => Policy): Promise<Wait[]> => {
  await clearJobs(database.sql)
  await seedEstimates()
  let nowMs = 0
  const policy = policyOf(() => nowMs)
  const coming = arrivals(seed)
  const jobs = new Map<string, Arrival>()
  const waits: Wait[] = []
  let before: Parameters<typeof exchange>[1] = {}
  while (waits.length < JOBS) {
    const due = coming.splice(0, coming.filter(({ atMs }) => atMs <= nowMs).length)
    for (const arrival of due) {
      const { priority, name } = arrival
      const [id] = await seedJobs(database.run, tenant, [
        newJob({ priority, name, ...policy.terms(priority) }),
      ])
      jobs.set(id ?? '', arrival)
    }
    const claim = { ...policy.plan(), limit: 1 }
    const { news, claimed } = await exchange(database.run, { ...before, claim })
    policy.observe?.({ claim: claim as Claim, claimed, news })
    const [job] = claimed
    if (!job) {
      before = {}
      nowMs = Math.max(nowMs, coming[0]?.atMs ?? nowMs)
      continue
    }
    const arrival = jobs.get(job.job_id)
    assert.ok(arrival)
    waits.push({ ...arrival, waitMs: nowMs - arrival.atMs })
    nowMs += arrival.runMs
    policy.ended?.(arrival.runMs)
    before = { ended: [completed(job, null, arrival.runMs)], closed: [job.token] }
  }
  return waits
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
const weightedMean = (waits: readonly Wait[]): number =>
  mean(waits.map(({ priority, waitMs }) => WEIGHTS[priority] * waitMs)) /
  mean(waits.map(({ priority }) => WEIGHTS[priority]))
const waitsOf = (waits: readonly Wait[], prefix: string): number[] =>
  waits.filter(({ name }) => name.startsWith(prefix)).map(({ waitMs }) => waitMs)
/** The longest wait if jobs ran in the order in which they came. */
const longestByArrival = (seed: number): number => {
  let freeAtMs = 0
  const waits = arrivals(seed).map(({ atMs, runMs }) => {
    const startMs = Math.max(freeAtMs, atMs)
    freeAtMs = startMs + runMs
    return startMs - atMs
  })
  return Math.max(...waits)
}

for (const seed of [1, 2, 3]) {
  test(`short jobs do not wait behind long ones of a higher class, and none starves: workload ${seed}`, async () => {
    const byClass = await simulate(seed, () => strict)
    const ours = await simulate(seed, learned)
    const compare = (what: string, measure: (waits: readonly Wait[]) => number, share: number): void => {
      const [then, now] = [measure(byClass), measure(ours)]
      assert.ok(
        now < share * then,
        `${what}: ${Math.round(now)} ms, with strict classes ${Math.round(then)} ms`,
      )
    }
    compare('mean wait, weighted by class', weightedMean, 0.95)
    compare('mean wait', (waits) => mean(waits.map(({ waitMs }) => waitMs)), 0.7)
    compare('short jobs of the normal class', (waits) => mean(waitsOf(waits, 'normal short')), 0.6)
    compare('jobs of the low class', (waits) => mean(waitsOf(waits, 'low')), 0.7)
    compare('longest wait in the low class', (waits) => Math.max(...waitsOf(waits, 'low')), 1)
    const longest = Math.max(...ours.map(({ waitMs }) => waitMs))
    assert.ok(longest < 2.5 * longestByArrival(seed), `longest wait ${longest} ms`)
  })
}
