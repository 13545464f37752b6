import { z } from '@hono/zod-openapi'
import type { JobPrediction } from '../../db/learning/prediction.ts'
import { priorityScore, rankTerms } from '../../db/rules/priority.ts'
import { viewEta } from '../jobs/job-eta.ts'
import { round } from '../jobs/job-view.ts'
import type { JobRequest } from '../jobs/new-job.ts'
import { eta, prediction } from '../jobs/schemas.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from './estimate.ts'
import { etaAfter } from './eta/eta.ts'

export const forecast = z
  .object({
    prediction,
    eta,
    priority_score: z.number().min(0).max(1),
    deadline_at_risk: z
      .boolean()
      .openapi({ description: 'Started at once, it would probably end after its deadline.' }),
  })
  .openapi('Forecast')

/** What the statement would go by if it found nothing either. */
const UNKNOWN: JobPrediction = {
  p50Log: DEFAULT_ESTIMATE.meanLog,
  p90Log: DEFAULT_ESTIMATE.meanLog + P90_DEVIATIONS * DEFAULT_ESTIMATE.deviationLog,
  p99Log: null,
  spreadLog: 0,
  source: 'default',
  modelVersion: null,
  residualLog: 0,
  sample: null,
  promisedWaitMs: null,
}

/** What would be answered if the job were submitted now. */
export const viewForecast = (
  request: JobRequest,
  prediction: JobPrediction | null,
  now: number,
): z.output<typeof forecast> => {
  const predicted = prediction ?? UNKNOWN
  const p50Ms = Math.exp(predicted.p50Log)
  const p90Ms = Math.exp(predicted.p90Log)
  const { rank_base, rank_slope } = rankTerms(
    request.priority,
    request.timeout_seconds ?? null,
    predicted.spreadLog,
  )
  const notBeforeMs = request.run_at === undefined ? 0 : Math.max(0, Date.parse(request.run_at) - now)
  const { promisedWaitMs: waitMs } = predicted
  return {
    prediction: {
      p50_ms: round(p50Ms, 1),
      p90_ms: round(p90Ms, 1),
      source: predicted.source,
      model_version: predicted.modelVersion,
    },
    eta: waitMs === null ? null : viewEta(now, etaAfter(waitMs, { p50Ms, p90Ms, notBeforeMs })),
    priority_score: round(priorityScore(rank_base + rank_slope * predicted.p50Log), 4),
    deadline_at_risk:
      request.deadline !== undefined && now + notBeforeMs + p90Ms > Date.parse(request.deadline),
  }
}
