import { arrayOf } from '../array-literal.ts'
import type { QueryValue } from '../query.ts'
import { sampleRuntimes, timeoutBounds } from '../rules/estimate.ts'
import type { Exchange } from './exchange.ts'
import type { ExchangeParameter } from './exchange-shape.ts'
import { toStretches } from './exchange-stretches.ts'

/** Each value is made only if the text of the exchange asks for it. */
export const exchangeValues = (exchange: Exchange) => {
  const { workerId, leaseSeconds, started, closed, claim } = exchange
  const { stretches, ended } = toStretches(exchange.ended)
  const samples = sampleRuntimes(ended)
  const timeouts = timeoutBounds(ended)
  const { segments, sized } = claim
  const orgs = [...new Set(stretches.map(({ org_id }) => org_id))]
  const attempts = ended.map(({ attempt }) => attempt)
  return {
    worker_id: () => workerId,
    lease_seconds: () => leaseSeconds,
    job_ids: () => arrayOf(ended.map(({ job_id }) => job_id)),
    tokens: () => arrayOf([...new Set(ended.map(({ token }) => token))]),
    lease_jobs: () => exchange.leaseJobs,
    stretch_orgs: () => arrayOf(stretches.map(({ org_id }) => org_id)),
    stretch_series: () => arrayOf(stretches.map(({ series_id }) => series_id)),
    stretch_announced: () => arrayOf(stretches.map(({ announced }) => announced)),
    stretch_firsts: () => arrayOf(stretches.map(({ first }) => first)),
    stretch_lasts: () => arrayOf(stretches.map(({ last }) => last)),
    common_attempts: () =>
      arrayOf(attempts.every((attempt) => attempt === attempts[0]) ? attempts.slice(0, 1) : attempts),
    orgs: () => arrayOf(orgs),
    org_numbers: () => arrayOf(ended.map(({ org_id }) => orgs.indexOf(org_id) + 1)),
    series_ids: () => arrayOf(ended.map(({ series_id }) => series_id)),
    attempts: () => arrayOf(attempts),
    ran_ms: () => arrayOf(ended.map(({ ranMs }) => Math.round(ranMs * 1000) / 1000)),
    announced: () => arrayOf(ended.map(({ announced }) => announced)),
    results: () => ended.map((end) => (end.state === 'completed' ? end.resultJson : null)),
    states: () => arrayOf(ended.map(({ state }) => state)),
    errors: () => ended.map((end) => ('error' in end ? JSON.stringify(end.error) : null)),
    delays_ms: () => ended.map((end) => ('delayMs' in end ? end.delayMs : null)),
    sample_series: () => arrayOf(samples.map(({ seriesId }) => seriesId)),
    sample_runs: () => arrayOf(samples.map(({ runs }) => runs)),
    sample_means: () => arrayOf(samples.map(({ meanLog }) => meanLog)),
    sample_spreads: () => arrayOf(samples.map(({ spreadLog }) => spreadLog)),
    timeout_series: () => arrayOf(timeouts.map(({ seriesId }) => seriesId)),
    timeout_logs: () => arrayOf(timeouts.map(({ log }) => log)),
    closed: () => arrayOf(closed),
    started_ids: () => arrayOf(started.map(({ job_id }) => job_id)),
    started_tokens: () => arrayOf([...new Set(started.map(({ token }) => token))]),
    started_ms: () => arrayOf(started.map(({ ranMs }) => ranMs)),
    claim_limit: () => claim.limit,
    starts: () => claim.starts,
    types: () => claim.types,
    from_lanes: () => arrayOf(segments.map(({ fromLane }) => fromLane)),
    from_keys: () => arrayOf(segments.map(({ fromKey }) => fromKey)),
    to_lanes: () => arrayOf(segments.map(({ toLane }) => toLane)),
    to_keys: () => arrayOf(segments.map(({ toKey }) => toKey)),
    age_from_key: () => claim.ageFromKey,
    free_cpu_units: () => sized?.freeCpuUnits ?? 0,
    free_memory_mb: () => sized?.freeMemoryMb ?? 0,
    ahead: () => sized?.ahead ?? 0,
  } satisfies Record<ExchangeParameter, () => QueryValue>
}
