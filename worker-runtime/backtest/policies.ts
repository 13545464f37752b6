import { AGE_SHARE } from '../../db/rules/lanes.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { DEFAULT_ESTIMATE, MOVED_LOG } from '../../functions/prediction/estimate.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import type { PastJob } from './history.ts'
import { createRunningMean, createRunningMeans } from './running-mean.ts'
import { createWorld, type PredictedJob, type World } from './world.ts'

/** What a policy knows of a job: its rank, now, and how much work it is taken for. */
export type Ticket = { series: string; rank: () => number; predictedMs: number }

export type Policy = {
  /** The share of the work that goes to the oldest jobs. */
  readonly ageShare: number
  /** Organisations share the workers' time. Otherwise the order is the same for all jobs. */
  readonly hasShares: boolean
  submit(job: PastJob, nowS: number, depth: number): Ticket
  /** The job has ended. Answers the series whose queued jobs should be scored again, if its estimate has moved. */
  end(ticket: Ticket, job: PastJob, nowS: number): string | undefined
}

export const POLICIES = [
  'fifo',
  'static-priority',
  'type-mean',
  'series-ewma',
  'smartqueue',
  'smartqueue-no-shares',
  'smartqueue-no-lane',
  'oracle',
] as const

export type PolicyName = (typeof POLICIES)[number]

export const createPolicy = (name: PolicyName, options: { seed: number; floorMs: number }): Policy => {
  switch (name) {
    case 'fifo':
      return byRank(1, () => 0)
    case 'static-priority': {
      const random = createRandom(options.seed)
      return byRank(0, () => Math.floor(random() * 4))
    }
    case 'oracle':
      return byRank(0, ({ runtimeMs }) => Math.log(runtimeMs))
    case 'type-mean':
      return byTypeMean(options.floorMs)
    case 'series-ewma':
      return learned({ ...options, ageShare: 0, hasShares: false, withNetwork: false, byBaseline: true })
    case 'smartqueue':
      return learned({ ...options, ageShare: AGE_SHARE, hasShares: true })
    case 'smartqueue-no-shares':
      return learned({ ...options, ageShare: AGE_SHARE, hasShares: false })
    case 'smartqueue-no-lane':
      return learned({ ...options, ageShare: 0, hasShares: true })
  }
}

const byRank = (ageShare: number, rankOf: (job: PastJob) => number): Policy => ({
  ageShare,
  hasShares: false,
  submit: (job) => {
    const rank = rankOf(job)
    return { series: '', rank: () => rank, predictedMs: 1 }
  },
  end: () => undefined,
})

const byTypeMean = (floorMs: number): Policy => {
  const global = createRunningMean()
  const types = createRunningMeans()
  return {
    ageShare: 0,
    hasShares: false,
    submit: ({ type }) => {
      const log = types(type).mean() ?? global.mean() ?? DEFAULT_ESTIMATE.meanLog
      return { series: '', rank: () => log, predictedMs: Math.exp(log) }
    },
    end: (_, { type, runtimeMs }) => {
      const log = Math.log(Math.max(runtimeMs, floorMs))
      global.add(log)
      types(type).add(log)
      return undefined
    },
  }
}

/** The product: ranks follow the series' newest estimates while jobs wait. */
const learned = (options: {
  seed: number
  floorMs: number
  ageShare: number
  hasShares: boolean
  withNetwork?: boolean
  byBaseline?: boolean
}): Policy => {
  const world: World = createWorld(options)
  const predicted = new WeakMap<Ticket, PredictedJob>()
  const scored = new Map<string, number>()

  const submit: Policy['submit'] = (job, nowS, depth) => {
    const entry = world.predict(job, nowS, depth)
    const { series, prediction } = entry
    const p50Log = options.byBaseline ? prediction.sample.baseLog : prediction.p50Log
    const residualLog = options.byBaseline ? 0 : prediction.residualLog
    const timeoutS = options.byBaseline || job.requestedMs === 0 ? null : job.requestedMs / 1000
    const spreadLog = options.byBaseline ? 0 : prediction.spreadLog
    const { rank_base: base, rank_slope: slope } = rankTerms('normal', timeoutS, spreadLog)
    const rank = (): number => {
      const meanLog = world.meanLog(series)
      return base + slope * (meanLog === undefined ? p50Log : meanLog + residualLog)
    }
    const ticket = { series, rank, predictedMs: Math.exp(p50Log) }
    predicted.set(ticket, entry)
    return ticket
  }

  const end: Policy['end'] = (ticket, _, nowS) => {
    world.learn(predicted.get(ticket) as PredictedJob, nowS)
    const meanLog = world.meanLog(ticket.series) ?? 0
    const before = scored.get(ticket.series)
    if (before !== undefined && Math.abs(meanLog - before) <= MOVED_LOG) return undefined
    scored.set(ticket.series, meanLog)
    return ticket.series
  }

  return { ageShare: options.ageShare, hasShares: options.hasShares, submit, end }
}
