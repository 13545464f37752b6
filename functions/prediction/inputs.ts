/**
 * What predictions look at, kept for each isolate. Up to a second old it is used as it is; up to five, it is used too and
 * refreshed in the background; beyond that it is waited for, but not for long: a submission goes on without a prediction
 * rather than wait for one. Values are kept and not promises: on workerd those belong to the request that asked.
 */

import { getPredictionInputs } from '../../db/queries/prediction-inputs.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { type ArrivingQueue, createOrgQueues, type OrgQueues } from './org-queues.ts'
import { type SeriesInputs, toSeries } from './series-inputs.ts'

export type SeriesName = { type: string; name: string }

export type Inputs = ArrivingQueue & {
  orgId: string
  champion: number | null
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

export const createInputCache = (
  options: { now?: () => number; patienceMs?: number; queues?: OrgQueues } = {},
): InputCache => {
  const { now = Date.now, patienceMs = PATIENCE_MS, queues = createOrgQueues(now) } = options
  const kept = new Map<string, Kept>()
  let champion: number | null = null

  const load = async (run: Run, orgId: string, series: readonly SeriesName[], hold: Hold): Promise<void> => {
    const [row] = await run(getPredictionInputs(orgId, series))
    if (!row) return
    const loadedAt = now()
    for (const inputs of toSeries(row)) {
      const key = keyOf(orgId, inputs)
      kept.delete(key)
      kept.set(key, { inputs, loadedAt, askedAt: loadedAt })
    }
    dropOldest(kept)
    champion = row.champion
    queues.keep(orgId, row, run, hold)
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

  return {
    get: async (run, orgId, series, hold) => {
      const wanted = distinct(series).slice(0, MAX_SERIES)
      const at = now()
      const missing = wanted.filter((name) => {
        const one = kept.get(keyOf(orgId, name))
        return !one || at - one.loadedAt > USABLE_MS
      })
      if (missing.length > 0 || !queues.arriving(orgId)) {
        const loading = load(run, orgId, missing, hold)
        hold(loading.catch(() => {}))
        await within(patienceMs, loading)
      }
      refresh(run, orgId, wanted, hold)
      const queue = queues.arriving(orgId)
      if (!queue) throw new Error('Nothing is known of the queue')
      return {
        ...queue,
        orgId,
        champion,
        series: (name) => kept.get(keyOf(orgId, name))?.inputs,
        arrive: (jobs) => queues.arrive(orgId, jobs),
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
