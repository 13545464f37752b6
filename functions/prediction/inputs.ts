/**
 * What predictions look at, kept for each isolate. Up to a second old it is used as it is; up to five, it is used too and
 * refreshed in the background; beyond that it is waited for, but not for long: a submission goes on without a prediction
 * rather than wait for one. Values are kept and not promises: on workerd those belong to the request that asked.
 */

import { getPredictionInputs, type PredictionInputsRow } from '../../db/queries/prediction-inputs.ts'
import { type LiveWorker, refreshQueueSums } from '../../db/queries/queue-facts.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { addToQueue, advanceQueue, type QueueSnapshot } from './eta/queue-snapshot.ts'
import { areSumsDue, toSnapshot } from './eta/queue-sums.ts'
import { type SeriesInputs, toSeries } from './series-inputs.ts'

export type SeriesName = { type: string; name: string }

/** The same for all jobs of an organisation. */
export type OrgInputs = {
  champion: number | null
  workers: readonly LiveWorker[]
  /** Undefined right after a crash of the server. */
  queue: QueueSnapshot | undefined
  /** Ready jobs of all organisations. */
  queueDepth: number
}

export type Inputs = OrgInputs & {
  orgId: string
  series(name: SeriesName): SeriesInputs | undefined
  /** Tells of jobs that are about to join the queue: the next look does not see them yet. */
  arrive(jobs: readonly { lane: number; p50Ms: number }[]): void
  /** Tells of submissions to these series, for the same reason. */
  submitted(series: readonly SeriesName[], atMs: number): void
}

export type InputCache = {
  /** Throws if they cannot be had, `InputsTimeout` if not in time. */
  get(run: Run, orgId: string, series: readonly SeriesName[], hold: Hold): Promise<Inputs>
}

export class InputsTimeout extends Error {
  override name = 'InputsTimeout'
}

const FRESH_MS = 1_000
const USABLE_MS = 5_000
const PATIENCE_MS = 250
/** Jobs of further series of a request go without a prediction. */
const MAX_SERIES = 200
/** Each takes some ten kilobytes, and an isolate has 128 MB. */
const MAX_KEPT = 2_000

type Kept = { inputs: SeriesInputs; loadedAt: number; askedAt: number }

/** `arrived`: jobs that the sums of the queue may not count yet, because they were taken before. */
type KeptOrg = { inputs: OrgInputs; at: number; arrived: { at: number; lane: number; p50Ms: number }[] }

/** From the prediction of a job to its commit. */
const COMMIT_MS = 20
/** More make no difference to a wait, and would take memory. */
const MAX_ARRIVED = 10_000

export const createInputCache = (options: { now?: () => number; patienceMs?: number } = {}): InputCache => {
  const { now = Date.now, patienceMs = PATIENCE_MS } = options
  const kept = new Map<string, Kept>()
  const orgs = new Map<string, KeptOrg>()

  const load = async (run: Run, orgId: string, series: readonly SeriesName[], hold: Hold): Promise<void> => {
    const [row] = await run(getPredictionInputs(orgId, series))
    if (!row) return
    const loadedAt = now()
    for (const inputs of toSeries(row)) {
      const key = keyOf(orgId, inputs)
      kept.delete(key)
      kept.set(key, { inputs, loadedAt, askedAt: loadedAt })
    }
    const takenAt = loadedAt - (row.queue?.age_ms ?? 0) - COMMIT_MS
    const arrived = (orgs.get(orgId)?.arrived ?? []).filter(({ at }) => at > takenAt).slice(-MAX_ARRIVED)
    orgs.delete(orgId)
    orgs.set(orgId, { inputs: toOrgInputs(row, arrived), at: loadedAt, arrived })
    for (const map of [kept, orgs]) dropOldest(map)
    if (row.queue && areSumsDue(row.queue)) hold(run(refreshQueueSums()).catch(logFailure))
  }

  const refresh = (run: Run, orgId: string, series: readonly SeriesName[], hold: Hold): void => {
    const at = now()
    const due = series.filter((name) => {
      const one = kept.get(keyOf(orgId, name))
      return one && at - one.askedAt > FRESH_MS
    })
    if (due.length === 0) return
    for (const name of due) Object.assign(kept.get(keyOf(orgId, name)) ?? {}, { askedAt: at })
    hold(load(run, orgId, due, hold).catch(logFailure))
  }

  /** The queue has gone on since it was looked at. */
  const bringUpToDate = (orgId: string): OrgInputs => {
    const org = orgs.get(orgId)
    if (!org) throw new Error('Nothing is known of the queue')
    const at = now()
    if (org.inputs.queue) org.inputs.queue = advanceQueue(org.inputs.queue, at - org.at)
    org.at = at
    return org.inputs
  }

  return {
    get: async (run, orgId, series, hold) => {
      const wanted = distinct(series).slice(0, MAX_SERIES)
      const at = now()
      const missing = wanted.filter((name) => {
        const one = kept.get(keyOf(orgId, name))
        return !one || at - one.loadedAt > USABLE_MS
      })
      if (missing.length > 0 || !orgs.has(orgId)) {
        const loading = load(run, orgId, missing, hold)
        hold(loading.catch(() => {}))
        await within(patienceMs, loading)
      }
      refresh(run, orgId, wanted, hold)
      const current = bringUpToDate(orgId)
      return {
        ...current,
        orgId,
        series: (name) => kept.get(keyOf(orgId, name))?.inputs,
        arrive: (jobs) => {
          const org = orgs.get(orgId)
          if (!org?.inputs.queue) return
          org.inputs.queue = addToQueue(org.inputs.queue, jobs)
          org.arrived.push(...jobs.map(({ lane, p50Ms }) => ({ lane, p50Ms, at: now() })))
        },
        submitted: (names, atMs) => {
          for (const name of distinct(names)) noteSubmission(kept.get(keyOf(orgId, name)), atMs / 1000)
        },
      }
    },
  }
}

const keyOf = (orgId: string, { type, name }: SeriesName): string => `${orgId}\0${type}\0${name}`

const distinct = (series: readonly SeriesName[]): SeriesName[] => [
  ...new Map(series.map((name) => [keyOf('', name), name])).values(),
]

const noteSubmission = (kept: Kept | undefined, lastSubmittedAtS: number): void => {
  if (kept) kept.inputs = { ...kept.inputs, view: { ...kept.inputs.view, lastSubmittedAtS } }
}

const toOrgInputs = (
  { champion, workers, queue }: PredictionInputsRow,
  arrived: KeptOrg['arrived'],
): OrgInputs => ({
  champion,
  workers,
  queue: queue ? addToQueue(toSnapshot(queue, workers), arrived) : undefined,
  queueDepth: queue?.depth ?? 0,
})

/** Those that were loaded longest ago come first. */
const dropOldest = (map: Map<string, unknown>): void => {
  for (const key of map.keys()) {
    if (map.size <= MAX_KEPT) break
    map.delete(key)
  }
}

const within = async (ms: number, promise: Promise<unknown>): Promise<void> => {
  const timeUp = Promise.withResolvers<never>()
  const timer = setTimeout(() => timeUp.reject(new InputsTimeout(`no inputs within ${ms} ms`)), ms)
  try {
    await Promise.race([promise, timeUp.promise])
  } finally {
    clearTimeout(timer)
  }
}
