import { arrayOf } from '../array-literal.ts'
import type { JobFailure } from '../queries/jobs.ts'
import type { Query } from '../query.ts'
import { sampleRuntimes, timeoutBounds } from '../rules/estimate.ts'
import { type Gap, orgNumberOf } from '../rules/flows.ts'
import { LOWEST_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import type { NewJob } from './job-fields.ts'

/** Identifies a held job. Every write by a worker carries the token, so a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

/** What a worker received with a job and sends back when the job ends, so that nothing has to be looked up. */
export type HeldKey = LeaseKey & { org_id: string; series_id: string; attempt: number }

/** How an attempt ended. `ranMs` is its runtime by the worker's clock. */
export type EndedAttempt = HeldKey & { ranMs: number } & (
    | { outcome: 'completed'; resultJson: string | null }
    /** `retryAfterMs`: the handler knows that an earlier retry would fail. */
    | { outcome: 'failed'; error: JobFailure; permanent: boolean; retryAfterMs?: number | undefined }
    | { outcome: 'snoozed'; delayMs: number }
  )

/** The new state of a job. Null: its lease was lost, and the outcome was discarded. */
export type EndState = 'completed' | 'failed' | 'retrying' | 'pending' | null

/** Nothing older than the key is left in the lane. */
export type LaneFloor = { lane: number; key: number }

/** A flow that the worker knows, and what it remembers of it. */
export type KnownFlow = {
  flow: number
  /** The virtual times of its organisation and of the flow, relative to the worker's clocks. */
  orgTimeMs: number
  timeMs: number
  /** It had jobs when the worker last looked. */
  waits: boolean
  /** How many jobs it gets in one turn. */
  turn: number
  oldestFirst: boolean
  ageFloor: number
  /** Lowest lane first. The first floor is below all lanes. None if nothing is remembered. */
  floors: readonly LaneFloor[]
}

export type Claim = {
  /** Counts jobs of the default size. Bigger ones are claimed only if they fit into the free capacity. */
  limit: number
  types: readonly string[]
  /** Reads 16 more jobs of a flow than are taken, and ranks them by the newest estimates. For small claims. */
  newestRank: boolean
  flows: readonly KnownFlow[]
  /** Where the claim looks for other flows. */
  gaps: readonly Gap[]
  /** The claim covers every flow: `flows` names all that are known to have jobs, and `gaps` cover the rest. */
  everywhere: boolean
  /** For flows that are found in the gaps: jobs in one turn, and whether the oldest go first. */
  newTurn: number
  fifo: boolean
  freeCpuUnits: number
  freeMemoryMb: number
  /** How many of the jobs may exceed the free capacity. */
  ahead: number
}

export type Exchange = {
  workerId: string
  leaseSeconds: number
  ended: readonly EndedAttempt[]
  /** Leases that hold no more jobs once these outcomes are recorded. */
  closed: readonly string[]
  claim: Claim
}

/** The trace that a job continues. */
export type JobTrace = {
  /** The span in which it was submitted. */
  traceparent: string
  predicted_ms: number
}

type JobToRun = Pick<NewJob, 'type' | 'name' | 'payload' | 'timeout_seconds' | 'cpu_units' | 'memory_mb'>

/** What a claim took from one flow. */
export type Turn = {
  flow: number
  /** The weight of the organisation. */
  weight: number
  jobs: number
  predicted_ms: number
  /** The lowest key that was read in each lane. Null if the flow has no jobs left, or jobs were passed over. */
  floors?: Record<string, number> | null
  /** With `newestRank`: predicted runtime of taken jobs that are older than any job left, and the key of the oldest left. */
  oldest_ms?: number | null
  oldest_left?: number | null
}

export type ClaimedJob = HeldKey &
  JobToRun & {
    /** The turn with which it was claimed. Null for a job that runs alone. */
    turn: Turn | null
    /** An attempt that takes longer is slow. Null: too little is known about the series. */
    predicted_p99_ms: number | null
    checkpoint: unknown
    /** Null: the job is not traced. */
    trace: JobTrace | null
  }

/** What a claim returns besides the jobs, for the next claim. */
export type ClaimNews = {
  turns: Turn[]
  /** Flows that turned out to have jobs, and flows that have none left for this worker. */
  found: number[] | null
  emptied: number[] | null
  /** The claim found enough before it had looked into all gaps. The next one should begin after this flow. */
  looked_up_to: number | null
  /** A pause, a limit on running jobs or a big job exists, so jobs may have been skipped. */
  careful: boolean
  /** Capacity of this worker is reserved for a big job. */
  reserved: boolean
  /** Jobs were skipped only because a concurrent claim was counting the running jobs of their organisation. */
  contended: boolean
}

export type Exchanged = {
  /** One for each ended attempt. */
  states: EndState[]
  /** The number of dependents that became ready. */
  becameReady: number
  claimed: ClaimedJob[]
  news: ClaimNews
}

/** The leased jobs as lists. A list with one value applies to all jobs. */
type Leased = {
  token: string
  /** The position of each job in the starting order. Null: the order does not matter. */
  order: number[] | null
  /** The lists from `attempts` on are in the order of these ids, or of `ids` if null. */
  job_ids: string[] | null
  /** The lists up to `p99s` are in the order of these ids, which is that of an index. */
  ids: string[] | null
  payloads: Record<string, unknown>[]
  timeouts: (number | null)[] | null
  p99s: (number | null)[] | null
  traces: [jobId: string, traceparent: string, predictedMs: number][] | null
  attempts: number[]
  series_ids: number[]
  /** Organisation, type and name by id. */
  series: Record<string, [orgId: string, type: string, name: string]>
  checkpoints: Record<string, unknown> | null
  /** CPU units and megabytes by job. Null: all have the default size. */
  sizes: Record<string, [cpuUnits: number, memoryMb: number]> | null
}

type Answer = {
  /** Null: all jobs completed. */
  states?: EndState[] | null
  became_ready?: number
  /** Null: no jobs were requested. */
  claim: (ClaimNews & { leased: Leased | null }) | null
}

export type ExchangeRow = { answer: Answer }
export type SuspectRow = { leased: Leased | null }

/** Records outcomes, if there are any, then claims jobs, in one call. db/queue/exchange.sql has the guarantees. */
export const exchange = (exchange: Exchange): Query<ExchangeRow> =>
  exchange.ended.length > 0 ? recordAndClaim(exchange) : claimOnly(exchange)

const recordAndClaim = ({ workerId, leaseSeconds, ended, closed, claim }: Exchange): Query<ExchangeRow> => ({
  name: 'exchange',
  text: `
    select smartqueue.exchange(
      p_worker_id => $1::text, p_lease_seconds => $2::integer,
      p_claim => row(
        $3::integer, $4::text[], $5::boolean, $6::integer[], $7::double precision[], $8::bigint[],
        $9::integer[], $10::double precision[], $11::boolean[], $12::integer[], $13::boolean[], $14::bigint[],
        $15::integer[], $16::integer[], $17::smallint[], $18::bigint[], $19::bigint[], $20::bigint[],
        $21::integer, $22::boolean, $23::double precision, $24::double precision, $25::integer
      )::smartqueue.claim_request,
      p_tokens => $26::bigint[], p_job_ids => $27::uuid[], p_org_ids => $28::uuid[], p_series_ids => $29::bigint[],
      p_attempts => $30::integer[], p_ran_ms => $31::double precision[], p_outcomes => $32::text[],
      p_results => $33::jsonb[], p_errors => $34::jsonb[], p_permanent => $35::boolean[],
      p_delays_ms => $36::double precision[], p_closed => $37::bigint[],
      p_sample_series => $38::bigint[], p_sample_runs => $39::double precision[],
      p_sample_logs => $40::double precision[], p_sample_spreads => $41::double precision[],
      p_timeout_series => $42::bigint[], p_timeout_logs => $43::double precision[]
    ) as answer`,
  values: [
    workerId,
    leaseSeconds,
    ...claimValues(claim),
    ...outcomeValues(ended),
    arrayOf(closed),
    ...sampleValues(ended),
  ],
})

/**
 * Commits asynchronously: if a crash undoes the claim, its jobs are simply ready again. An idle worker calls this for
 * every job. Through `exchange`, with no outcomes, the same claim takes 10 % more server CPU.
 */
const claimOnly = ({ workerId, leaseSeconds, claim }: Exchange): Query<ExchangeRow> => ({
  name: 'claim-jobs',
  text: `
    select
      json_build_object(
        'claim',
        smartqueue.claim_jobs(
          p_worker_id => $1::text, p_lease_seconds => $2::integer,
          p_claim => row(
            $3::integer, $4::text[], $5::boolean, $6::integer[], $7::double precision[], $8::bigint[],
            $9::integer[], $10::double precision[], $11::boolean[], $12::integer[], $13::boolean[],
            $14::bigint[], $15::integer[], $16::integer[], $17::smallint[], $18::bigint[], $19::bigint[],
            $20::bigint[], $21::integer, $22::boolean, $23::double precision, $24::double precision,
            $25::integer
          )::smartqueue.claim_request
        )
      ) as answer,
      set_config('synchronous_commit', 'off', true)`,
  values: [workerId, leaseSeconds, ...claimValues(claim)],
})

const claimValues = (claim: Claim) => {
  const { flows, gaps } = claim
  const orgTimes = new Map(flows.map(({ flow, orgTimeMs }) => [orgNumberOf(flow), orgTimeMs]))
  const orgs = [...orgTimes.keys()]
  const places = new Map(orgs.map((org, n) => [org, n + 1]))
  const floors = listFloors(flows)
  return [
    claim.limit,
    claim.types,
    claim.newestRank,
    arrayOf(orgs),
    arrayOf([...orgTimes.values()]),
    arrayOf(flows.map(({ flow }) => flow)),
    arrayOf(flows.map(({ flow }) => places.get(orgNumberOf(flow)) ?? 0)),
    arrayOf(flows.map(({ timeMs }) => timeMs)),
    arrayOf(flows.map(({ waits }) => `${waits}`)),
    arrayOf(flows.map(({ turn }) => turn)),
    arrayOf(flows.map(({ oldestFirst }) => `${oldestFirst}`)),
    arrayOf(flows.map(({ ageFloor }) => ageFloor)),
    arrayOf(floors.firsts),
    arrayOf(floors.lasts),
    arrayOf(floors.all.map(({ lane }) => lane)),
    arrayOf(floors.all.map(({ key }) => key)),
    arrayOf(gaps.map(({ after }) => after)),
    arrayOf(gaps.map(({ before }) => before)),
    claim.newTurn,
    claim.fifo,
    claim.freeCpuUnits,
    claim.freeMemoryMb,
    claim.ahead,
  ]
}

/** All floors in one list, and by flow the positions of its first and last floor in it. */
const listFloors = (flows: readonly KnownFlow[]) => {
  const all: LaneFloor[] = [{ lane: LOWEST_LANE, key: 0 }]
  const firsts: number[] = []
  const lasts: number[] = []
  for (const { floors } of flows) {
    firsts.push(floors.length > 0 ? all.length + 1 : 1)
    all.push(...floors)
    lasts.push(floors.length > 0 ? all.length : 1)
  }
  return { all, firsts, lasts }
}

const outcomeValues = (ended: readonly EndedAttempt[]) => {
  const allCompleted = ended.every(({ outcome }) => outcome === 'completed')
  const someResult = ended.some((end) => end.outcome === 'completed' && end.resultJson !== null)
  return [
    alike(ended.map(({ token }) => token)),
    arrayOf(ended.map(({ job_id }) => job_id)),
    alike(ended.map(({ org_id }) => org_id)),
    alike(ended.map(({ series_id }) => series_id)),
    alike(ended.map(({ attempt }) => attempt)),
    arrayOf(ended.map(({ ranMs }) => Math.round(ranMs * 1000) / 1000)),
    alike(ended.map(({ outcome }) => outcome)),
    someResult ? ended.map((end) => (end.outcome === 'completed' ? end.resultJson : null)) : '{}',
    allCompleted ? '{}' : ended.map((end) => (end.outcome === 'failed' ? JSON.stringify(end.error) : null)),
    allCompleted ? '{}' : ended.map((end) => end.outcome === 'failed' && end.permanent),
    allCompleted ? '{}' : ended.map(delayOf),
  ]
}

const sampleValues = (ended: readonly EndedAttempt[]) => {
  const samples = sampleRuntimes(ended)
  const timeouts = timeoutBounds(ended)
  return [
    arrayOf(samples.map(({ seriesId }) => seriesId)),
    arrayOf(samples.map(({ runs }) => runs)),
    arrayOf(samples.map(({ meanLog }) => meanLog)),
    arrayOf(samples.map(({ spreadLog }) => spreadLog)),
    arrayOf(timeouts.map(({ seriesId }) => seriesId)),
    arrayOf(timeouts.map(({ log }) => log)),
  ]
}

/** A value that all jobs share is sent once. */
const alike = (values: readonly (string | number)[]): string =>
  arrayOf(values.every((value) => value === values[0]) ? values.slice(0, 1) : values)

const delayOf = (end: EndedAttempt): number | null => {
  if (end.outcome === 'completed') return null
  return end.outcome === 'snoozed' ? end.delayMs : (end.retryAfterMs ?? null)
}

export const readExchange = (
  [row]: readonly ExchangeRow[],
  { ended }: Pick<Exchange, 'ended'>,
): Exchanged => {
  if (!row) throw new Error('An exchange returns one row')
  const { states, became_ready, claim } = row.answer
  const { leased, ...news } = claim ?? NOTHING
  return {
    states: states ?? ended.map(() => 'completed'),
    becameReady: became_ready ?? 0,
    claimed: leased ? withTurns(toJobs(leased), news.turns) : [],
    news,
  }
}

const NOTHING = {
  leased: null,
  turns: [],
  found: null,
  emptied: null,
  looked_up_to: null,
  careful: false,
  reserved: false,
  contended: false,
}

/** Claims a job that must run alone, for a worker that holds no jobs. */
export const claimSuspect = (claim: {
  workerId: string
  leaseSeconds: number
  types: readonly string[]
  cpuUnits: number
  memoryMb: number
}): Query<SuspectRow> => ({
  name: 'claim-suspect',
  text: `
    select smartqueue.claim_suspect(
      p_worker_id => $1::text, p_lease_seconds => $2::integer, p_types => $3::text[],
      p_cpu_units => $4::double precision, p_memory_mb => $5::double precision
    ) as leased`,
  values: [claim.workerId, claim.leaseSeconds, claim.types, claim.cpuUnits, claim.memoryMb],
})

export const readSuspect = ([row]: readonly SuspectRow[]): ClaimedJob | undefined =>
  row?.leased ? toJobs(row.leased)[0] : undefined

const toJobs = (leased: Leased): ClaimedJob[] => {
  const { token, ids, payloads, timeouts, p99s, checkpoints, series } = leased
  const places = leased.job_ids && new Map(ids?.map((id, place) => [id, place]))
  const attemptOf = listReader(leased.attempts, 1)
  const seriesOf = listReader(leased.series_ids.map(String), '')
  const traces = new Map(
    leased.traces?.map(([id, traceparent, predicted_ms]) => [id, { traceparent, predicted_ms }]),
  )
  const jobs = (leased.job_ids ?? ids ?? []).map((job_id, n) => {
    const place = places?.get(job_id) ?? n
    const series_id = seriesOf(n)
    const [org_id, type, name] = series[series_id] ?? ['', '', '']
    const [cpu_units, memory_mb] = leased.sizes?.[job_id] ?? DEFAULT_SIZE
    return {
      job_id,
      org_id,
      series_id,
      type,
      name,
      payload: payloads[place] ?? {},
      timeout_seconds: timeouts?.[place] ?? null,
      predicted_p99_ms: p99s?.[place] ?? null,
      token,
      attempt: attemptOf(n),
      cpu_units,
      memory_mb,
      checkpoint: checkpoints?.[job_id] ?? null,
      trace: traces.get(job_id) ?? null,
      turn: null,
    }
  })
  return leased.order ? inOrder(jobs, leased.order) : jobs
}

/** Jobs start in the order of the turns. */
const withTurns = (jobs: ClaimedJob[], turns: readonly Turn[]): ClaimedJob[] => {
  let next = 0
  for (const turn of turns) {
    for (const job of jobs.slice(next, next + turn.jobs)) job.turn = turn
    next += turn.jobs
  }
  return jobs
}

const DEFAULT_SIZE = [DEFAULT_RESOURCES.cpu_units, DEFAULT_RESOURCES.memory_mb] as const

const inOrder = (jobs: readonly ClaimedJob[], order: readonly number[]): ClaimedJob[] => {
  const sorted: ClaimedJob[] = []
  for (const [n, job] of jobs.entries()) sorted[(order[n] ?? 0) - 1] = job
  return sorted
}

const listReader = <Value>(list: readonly Value[], missing: Value): ((n: number) => Value) => {
  const [first = missing] = list
  return list.length > 1 ? (n) => list[n] ?? missing : () => first
}
