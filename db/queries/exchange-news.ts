import { LOWEST_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'

/** Where the trace of a job goes on. */
export type JobTrace = {
  /** The span in which it was submitted. */
  traceparent: string
  /** How often it was executed before, also if that was no attempt that counts. 0 for who has not asked. */
  executions: number
  predicted_ms: number
}

/** How often jobs were executed before, by their ids. */
export type Executions = Record<string, number>

export type ClaimedJob = {
  job_id: string
  org_id: string
  series_id: string
  type: string
  name: string
  payload: Record<string, unknown>
  timeout_seconds: number | null
  /** Beyond this an attempt is slow. Null: not enough is known of the series. */
  predicted_p99_ms: number | null
  token: string
  attempt: number
  /** Counts as started from the claim on. */
  started: boolean
  cpu_units: number
  memory_mb: number
  checkpoint: unknown
  /** Null: it was submitted in none. */
  trace: JobTrace | null
}

/** What an exchange says besides: which ends came too late, and what the next claim should know. */
export type ExchangeNews = {
  /** False if nothing was recorded, because jobs have left the leases: the ends must be sent again to be checked. */
  recorded?: boolean
  /** Ended jobs that were checked, and whose lease was no longer held. */
  lost?: string[] | null
  /** Dependents that the ends have made ready. */
  became_ready?: number | null
  /** Predicted work claimed. */
  predicted_ms: number | null
  /**
   * The smallest key claimed of each lane, and of a reranked claim the smallest seen. Not of what was urgent: that may
   * stand in the middle of its lane.
   */
  floors: Record<string, number>
  /** Of a reranked claim: there were more jobs than it looked at. If it got too few of them, others were faster. */
  window_full?: boolean
  /** Of a lone claim: other jobs wait, too. */
  several?: boolean
  /** Predicted work of claimed jobs that were the oldest anyway, and the key of the oldest that was left. */
  oldest_ms?: number | null
  oldest_left?: number | null
  /** In a claim by size: room is kept for a job that has a reservation with this worker. */
  reserved?: boolean
  /** Jobs wait that are bigger than the default: a claim that is not by size passes over them. */
  big_waiting: boolean
  /** Something is paused, or has a limit of running jobs: a claim may have passed over it. */
  restricted: boolean
  /** In a restricted claim: an organisation was passed over only because another claim was at it. */
  contended?: boolean
}

/**
 * The answer as it is sent: lists of the claimed jobs. A list with one value speaks for all of them, one that is null
 * for none: nothing was claimed.
 */
type Answer = Omit<ExchangeNews, 'floors' | 'several'> & {
  /** Where they cannot be told from what was claimed. */
  floors?: Record<string, number> | null
  order: 'rank' | 'age'
  /** Of the new lease. */
  token: string | null
  /** The claimed jobs, in the order in which the database found them. */
  jobs: {
    ids: string[] | null
    payloads: Record<string, unknown>[] | null
    /** Null if none of them has one. */
    timeouts: (number | null)[] | null
    p99s: (number | null)[] | null
    /** Of the jobs that have one. */
    traces: [jobId: string, traceparent: string, predictedMs: number][] | null
    /** Of those of them that were executed before, if it was asked for. */
    executions?: Executions | null
  }
  /** The same jobs in the order of the lists below; null if they do not differ in any of these. */
  job_ids: string[] | null
  attempts: number[] | null
  lanes: number[] | null
  keys: number[] | null
  series_ids: number[] | null
  /** When; null for a job that is only held. */
  started: (string | null)[] | null
  cpu_units?: number[] | null
  memory_mb?: number[] | null
  /** Organisation, type and name by id. */
  series: Record<string, [string, string, string]> | null
  /** Of the claimed jobs that have one. */
  checkpoints: Record<string, unknown> | null
}

export type ExchangeRow = { news: Answer }

/** Puts the claimed jobs together, the first to start first. */
export const readExchange = ([row]: readonly ExchangeRow[]): {
  news: ExchangeNews
  claimed: ClaimedJob[]
} => {
  if (!row) throw new Error('An exchange answers one row')
  const answer = row.news
  const { recorded, lost, became_ready, predicted_ms, reserved, big_waiting, restricted, contended } = answer
  const news = { recorded, lost, became_ready, predicted_ms, reserved, big_waiting, restricted, contended }
  const { window_full, oldest_ms, oldest_left } = answer
  const floors = window_full === undefined ? floorsOf(answer) : (answer.floors ?? {})
  const more = { window_full, oldest_ms, oldest_left, floors }
  return { news: { ...news, ...more } as ExchangeNews, claimed: claimedJobs(answer) }
}

const claimedJobs = (answer: Answer): ClaimedJob[] => {
  const ids = answer.jobs.ids ?? []
  const toJob = jobMaker(answer)
  if (!answer.job_ids) return ids.map((id, n) => toJob(id, n, n))
  const numbers = new Map(ids.map((id, number) => [id, number]))
  return inOrder(answer, answer.job_ids).flatMap(({ id, position }) => {
    const number = numbers.get(id)
    return number === undefined ? [] : toJob(id, number, position)
  })
}

/** What is urgent, then the lowest lane, or the oldest. Inside a lane one order is as good as another. */
const inOrder = ({ order, lanes, keys }: Answer, ids: readonly string[]) => {
  const laneOf = readList(lanes, 0)
  const keyOf = readList(keys, 0)
  const placeOf = (position: number): number =>
    order === 'rank' || laneOf(position) === LOWEST_LANE ? laneOf(position) : keyOf(position)
  return ids
    .map((id, position) => ({ id, position, place: placeOf(position) }))
    .sort((a, b) => a.place - b.place)
}

const floorsOf = ({ lanes, keys }: Answer): Record<string, number> => {
  const floors: Record<string, number> = {}
  const laneOf = readList(lanes, LOWEST_LANE)
  for (const [position, key] of (keys ?? []).entries()) {
    const lane = laneOf(position)
    if (lane !== LOWEST_LANE) floors[lane] = Math.min(floors[lane] ?? key, key)
  }
  return floors
}

const readList = <Value>(list: readonly Value[] | null | undefined, missing: Value) => {
  const [first = missing] = list ?? []
  return list && list.length > 1 ? (position: number): Value => list[position] ?? missing : (): Value => first
}

export const toTrace = (
  [jobId, traceparent, predicted_ms]: [jobId: string, traceparent: string, predictedMs: number],
  executions: Executions | null | undefined,
): JobTrace => ({ traceparent, predicted_ms, executions: executions?.[jobId] ?? 0 })

/** Makes a job from its number among the jobs and its position in the lists. */
const jobMaker = (answer: Answer) => {
  const { jobs, checkpoints } = answer
  const token = answer.token ?? ''
  const traces = new Map((jobs.traces ?? []).map((sent) => [sent[0], toTrace(sent, jobs.executions)]))
  const series = new Map(Object.entries(answer.series ?? {}))
  const seriesOf = readList(answer.series_ids?.map(String), '')
  const attemptOf = readList(answer.attempts, 1)
  const startedOf = readList(answer.started, null)
  const cpuUnitsOf = readList(answer.cpu_units, DEFAULT_RESOURCES.cpu_units)
  const memoryMbOf = readList(answer.memory_mb, DEFAULT_RESOURCES.memory_mb)
  return (job_id: string, number: number, position: number): ClaimedJob => {
    const series_id = seriesOf(position)
    const [org_id = '', type = '', name = ''] = series.get(series_id) ?? []
    return {
      job_id,
      org_id,
      series_id,
      type,
      name,
      payload: jobs.payloads?.[number] ?? {},
      timeout_seconds: jobs.timeouts?.[number] ?? null,
      predicted_p99_ms: jobs.p99s?.[number] ?? null,
      token,
      attempt: attemptOf(position),
      started: startedOf(position) !== null,
      cpu_units: cpuUnitsOf(position),
      memory_mb: memoryMbOf(position),
      checkpoint: checkpoints?.[job_id] ?? null,
      trace: traces.get(job_id) ?? null,
    }
  }
}
