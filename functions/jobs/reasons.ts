import { isoTime } from '../../db/iso-time.ts'
import type { JobFacts } from '../../db/queries/job-facts.ts'
import type { JobRow } from '../../db/queries/jobs.ts'
import { AGE_SHARE } from '../../db/rules/lanes.ts'
import { LEAST_SLOW_MS } from '../../db/rules/slow.ts'
import type { Ahead } from '../prediction/eta/place.ts'
import { isRunnable, lanesOf, othersAhead } from '../prediction/eta/queue-sums.ts'
import { inPercent, inWords, seconds } from './durations.ts'
import { aheadOf } from './job-eta.ts'
import { round } from './job-view.ts'

/** Why a job is where it is: a code for programs, a sentence for people, and the numbers in it. */
export type Reason = { code: ReasonCode; message: string } & Record<string, unknown>

export const REASON_CODES = [
  'finished',
  'slow',
  'running',
  'dependency',
  'delayed',
  'retry_backoff',
  'paused',
  'no_worker',
  'resources',
  'running_limit',
  'runs_alone',
  'share',
  'queue',
  'deadline',
] as const

type ReasonCode = (typeof REASON_CODES)[number]

/** The first is what keeps it most. */
export const reasonsOf = (row: JobRow, facts: JobFacts): Reason[] => {
  switch (row.status) {
    case 'completed':
    case 'failed':
    case 'cancelled':
      return [finished(row)]
    case 'running':
      return [...slow(row, facts), running(row, facts), ...deadline(row, facts)]
    default:
      return [
        ...dependency(row, facts),
        ...delayed(row, facts),
        ...paused(row, facts),
        ...withoutWorker(row, facts),
        ...runningLimit(facts),
        ...runsAlone(facts),
        ...inQueue(facts),
        ...deadline(row, facts),
      ]
  }
}

const finished = (row: JobRow): Reason => {
  const { attempts, error, finished_at } = row
  const tries = attempts === 1 ? 'its first attempt' : `${attempts} attempts`
  const why = error ? `: ${error.code}: ${error.message}` : ''
  const message = {
    completed: `It completed with ${tries}.`,
    cancelled: `It was cancelled${attempts > 0 ? ` after ${tries}` : ' before it ran'}.`,
    failed: `It failed${attempts > 0 ? ` after ${tries}` : ' before it ran'}${why}`,
  }[row.status as 'completed']
  return { code: 'finished', message, attempts, error, finished_at }
}

const ranMs = ({ started_at }: JobRow, { now }: JobFacts): number =>
  Math.max(0, Date.parse(now) - Date.parse(started_at ?? now))

const running = (row: JobRow, facts: JobFacts): Reason => {
  const ran = ranMs(row, facts)
  return {
    code: 'running',
    message: `It has been running for ${inWords(ran)}, of ${inWords(row.predicted_ms)} that were predicted.`,
    worker_id: row.worker_id,
    ran_seconds: seconds(ran),
    predicted_seconds: seconds(row.predicted_ms),
  }
}

const slow = (row: JobRow, facts: JobFacts): Reason[] => {
  const { predicted_p99_ms: p99 } = facts
  const ran = ranMs(row, facts)
  if (p99 === null || ran <= Math.max(p99, LEAST_SLOW_MS)) return []
  const message = `It is slow: 99 of 100 such attempts take less than ${inWords(p99)}, and it has been running for ${inWords(ran)}.`
  return [{ code: 'slow', message, ran_seconds: seconds(ran), p99_seconds: seconds(p99) }]
}

const dependency = (row: JobRow, { parents, open_parents }: JobFacts): Reason[] => {
  if (row.status !== 'blocked') return []
  const shown = parents.map(({ id, name, status }) => ({ id, name, status }))
  const named = shown.slice(0, 3).map(({ name, status }) => `"${name}" (${status})`)
  const more = open_parents > named.length ? ` and ${open_parents - named.length} more` : ''
  const jobs = open_parents === 1 ? 'a job that has' : `${open_parents} jobs that have`
  const message = `It waits for ${jobs} not completed: ${named.join(', ')}${more}.`
  return [{ code: 'dependency', message, open_parents, parents: shown }]
}

const delayed = (row: JobRow, { wake_at, now }: JobFacts): Reason[] => {
  const at = wake_at ?? row.run_at
  if (!at || at <= now) return []
  const inTime = inWords(Date.parse(at) - Date.parse(now))
  if (row.status !== 'retrying') {
    return [{ code: 'delayed', message: `It is not to start before ${at}, in ${inTime}.`, run_at: at }]
  }
  const { error, attempts, max_attempts } = row
  const why = error ? ` (${error.code}: ${error.message})` : ''
  const message = `Attempt ${attempts} of ${max_attempts} failed${why}; it is tried again in ${inTime}.`
  return [{ code: 'retry_backoff', message, wake_at: at, attempts, max_attempts, error }]
}

const paused = (row: JobRow, { pauses }: JobFacts): Reason[] =>
  pauses.map(({ type, paused_at }) => {
    const since = isoTime(paused_at)
    const what = type === null ? 'The queue of the organisation is' : `Jobs of the type "${row.type}" are`
    return { code: 'paused', message: `${what} paused since ${since}.`, paused_type: type, since }
  })

const withoutWorker = (row: JobRow, { workers, reserved_by }: JobFacts): Reason[] => {
  const able = workers.filter(({ types }) => types.includes(row.type))
  const { cpu_units, memory_mb } = row
  const needs = `${cpu_units} cpu units and ${memory_mb} MB`
  if (able.length === 0) {
    const message = `No worker that is alive handles jobs of the type "${row.type}".`
    return [{ code: 'no_worker', message, type: row.type, live_workers: workers.length }]
  }
  if (!isRunnable(row, workers)) {
    const largest = {
      cpu_units: Math.max(...able.map((worker) => worker.cpu_units)),
      memory_mb: Math.max(...able.map((worker) => worker.memory_mb)),
    }
    const message = `It needs ${needs}, and no live worker of its type is that big.`
    return [{ code: 'resources', message, needs: { cpu_units, memory_mb }, largest }]
  }
  if (reserved_by === null) return []
  const message = `It needs ${needs}, more than is free: ${reserved_by} keeps room for it.`
  return [{ code: 'resources', message, needs: { cpu_units, memory_mb }, reserved_by }]
}

const runningLimit = ({ running_limit, running_jobs, lane }: JobFacts): Reason[] => {
  if (running_limit === null || lane === null || running_jobs < running_limit) return []
  const message = `The organisation runs ${running_jobs} jobs, and may run ${running_limit} at a time.`
  return [{ code: 'running_limit', message, limit: running_limit, running: running_jobs }]
}

const runsAlone = ({ runs_alone }: JobFacts): Reason[] => {
  if (!runs_alone) return []
  const message =
    'It has to run alone, because its workers died twice in a row while it ran alongside other jobs. It is waiting for a worker with no other jobs.'
  return [{ code: 'runs_alone', message }]
}

/** The jobs of its organisation that go first, and the work of others that does. */
const inQueue = (facts: JobFacts): Reason[] => {
  const ahead = aheadOf(facts, facts.queue ? lanesOf(facts.queue) : [])
  if (!ahead) return []
  const othersMs = facts.queue ? othersAhead(facts.queue, ahead.predictedMs) : 0
  const reasons = [...share(facts, othersMs), queued(facts, ahead)]
  return othersMs > ahead.predictedMs ? reasons : reasons.reverse()
}

const share = ({ queue, org_name }: JobFacts, othersMs: number): Reason[] => {
  if (!queue || othersMs < 1) return []
  const { used, share } = queue
  const message =
    `${org_name} used ${inPercent(used)} of the workers in the last minute; its share is ${inPercent(share)}. ` +
    `${inWords(othersMs)} of other organisations' work goes first.`
  return [
    {
      code: 'share',
      message,
      organisation: org_name,
      used: round(used, 4),
      share: round(share, 4),
      others_seconds: seconds(othersMs),
    },
  ]
}

const queued = ({ workers }: JobFacts, { jobs, predictedMs, counted }: Ahead): Reason => {
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0)
  const busy = workers.reduce((sum, worker) => sum + Math.min(worker.running, worker.slots), 0)
  const count = `${counted ? '' : 'About '}${jobs.toLocaleString('en')}`
  const message =
    jobs === 0
      ? `It is the next of its organisation; ${busy} of ${slots} slots are busy.`
      : `${count} ${jobs === 1 ? 'job' : 'jobs'} of its organisation ${jobs === 1 ? 'is' : 'are'} ahead of it, predicted to take ${inWords(predictedMs)} on ${slots} slots.`
  return {
    code: 'queue',
    message,
    jobs,
    predicted_seconds: seconds(predictedMs),
    slots,
    busy_slots: busy,
    age_share: AGE_SHARE,
  }
}

const deadline = (row: JobRow, { now }: JobFacts): Reason[] => {
  if (!row.deadline) return []
  const at = row.deadline
  const startBy = new Date(Date.parse(row.deadline) - row.predicted_p90_ms)
  const base = {
    code: 'deadline' as const,
    deadline: at,
    start_by: startBy.toISOString(),
    at_risk: row.deadline_at_risk,
  }
  if (row.deadline_at_risk) return [{ ...base, message: `It will probably miss its deadline, ${at}.` }]
  if (row.status === 'running') return [{ ...base, message: `It will probably make its deadline, ${at}.` }]
  const inTime = inWords(startBy.getTime() - Date.parse(now))
  return [{ ...base, message: `To make its deadline it must start within ${inTime}; then it goes first.` }]
}
