import { z } from '@hono/zod-openapi'
import { isoTime } from '../../db/iso-time.ts'
import type { EtaAccuracyRow, ModelCardRow } from '../../db/queries/model-card.ts'
import { timestamp } from '../http/openapi.ts'
import { round } from '../jobs/job-view.ts'
import { PREDICTION_FAULTS } from './faults.ts'
import { INPUT_NAMES } from './model/encoder.ts'
import { EXPERTS } from './model/experts.ts'

const version = z
  .object({
    version: z.int(),
    parent: z.int().nullable().openapi({ description: 'The version that it was trained on from.' }),
    status: z.enum(['champion', 'retired', 'rejected', 'rolled_back']),
    created_at: timestamp,
    decided_at: timestamp.nullable(),
    trained_on: z.int().openapi({ description: 'Executions, in all.' }),
    evaluation: z.record(z.string(), z.unknown()).openapi({
      description:
        'Errors on executions that it was not trained on, beside the champion of that time, and why it was decided so.',
    }),
  })
  .openapi('ModelVersion')

const point = z.object({
  at: timestamp,
  model_version: z.int().nullable(),
  executions: z.int(),
  errors: z
    .record(z.string(), z.unknown())
    .openapi({ description: 'Mean absolute error of ln(runtime), by predictor.' }),
  coverage: z.number().nullable().openapi({ description: 'The share of runtimes below their p90.' }),
  mape: z.number().nullable().openapi({ description: 'Mean absolute percentage error.' }),
})

const share = z.number().min(0).max(1).nullable()

export const modelCard = z
  .object({
    version: z.int().nullable().openapi({ description: 'Of the network in use. Null: there is none yet.' }),
    trained_on: z.int().openapi({ description: 'Executions that the network in use was trained on.' }),
    learned: z.int().openapi({ description: 'Executions that were learned from, in all.' }),
    updated_at: timestamp,
    inputs: z.array(z.string()).openapi({ description: 'What the network looks at.' }),
    sources: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'Where predictions of the recent executions came from.' }),
    accuracy: z.record(z.string(), z.unknown()).openapi({ description: 'Over the recent executions.' }),
    accuracy_over_time: z.array(point).openapi({ description: 'Newest first, up to a week.' }),
    calibration: z.object({
      p90_coverage: share.openapi({ description: 'The share of runtimes below their p90: 0.9 is right.' }),
      over: z.int().openapi({ description: 'Executions that it was measured over.' }),
    }),
    versions: z.array(version).openapi({ description: 'Newest first, up to 50.' }),
    mixture: z.object({
      experts: z
        .array(z.string())
        .openapi({ description: 'Those among whom the mixture weighs, for each series.' }),
      mean_abs_log_error: z.record(z.string(), z.number()).openapi({
        description: 'Of each over the recent executions, as far as it is known.',
      }),
    }),
    faults: z
      .array(
        z.object({
          reason: z.string().openapi({ description: PREDICTION_FAULTS.join(', ') }),
          faults: z.int(),
          last_at: timestamp,
        }),
      )
      .openapi({ description: 'Why jobs were predicted without the network, or not at all.' }),
    eta: z
      .object({
        jobs: z.int(),
        median_abs_error_s: z.number().nullable(),
        mean_abs_error_s: z.number().nullable(),
        within_p90: share.openapi({ description: 'The share of jobs that ended by their `finish_p90_at`.' }),
      })
      .openapi({ description: "How well promised starts were kept, by the organisation's newest jobs." }),
    known_limits: z.array(z.string()),
  })
  .openapi('ModelCard')

export const viewModelCard = (row: ModelCardRow, eta: EtaAccuracyRow): z.output<typeof modelCard> => {
  const champion = row.versions.find(({ status }) => status === 'champion')
  return {
    version: champion?.version ?? null,
    trained_on: champion?.trained_on ?? 0,
    learned: row.learned,
    updated_at: row.updated_at,
    inputs: [...INPUT_NAMES],
    sources: row.by_source,
    accuracy: row.accuracy,
    accuracy_over_time: row.points.map((one) => ({ ...one, at: isoTime(one.at) })),
    calibration: calibrationOf(row),
    versions: row.versions.map((one) => ({
      ...one,
      created_at: isoTime(one.created_at),
      decided_at: one.decided_at && isoTime(one.decided_at),
    })),
    mixture: { experts: [...EXPERTS], mean_abs_log_error: errorsOf(row) },
    faults: row.faults.map((one) => ({ ...one, last_at: isoTime(one.last_at) })),
    eta: {
      jobs: eta.jobs,
      median_abs_error_s: rounded(eta.median_abs_error_s),
      mean_abs_error_s: rounded(eta.mean_abs_error_s),
      within_p90: rounded(eta.within_p90),
    },
    known_limits: KNOWN_LIMITS,
  }
}

const rounded = (value: number | null): number | null => (value === null ? null : round(value, 3))

/** Over the recent executions; else of the newest point that has one. */
const COVERAGE = z.object({ coverage: z.number(), executions: z.int() })

const calibrationOf = ({ accuracy, points }: ModelCardRow): { p90_coverage: number | null; over: number } => {
  const recent = COVERAGE.safeParse(accuracy).data
  const newest = recent ?? points.find(({ coverage }) => coverage !== null)
  return { p90_coverage: newest?.coverage ?? null, over: newest?.executions ?? 0 }
}

const ERRORS = z.object({ errors: z.record(z.string(), z.number()) })

/** By predictor, over the recent executions; else of the newest point. */
const errorsOf = ({ accuracy, points }: ModelCardRow): Record<string, number> => {
  const recent = ERRORS.safeParse(accuracy)
  const newest = ERRORS.safeParse(points[0])
  return recent.data?.errors ?? newest.data?.errors ?? {}
}

const KNOWN_LIMITS = [
  'A series that has not run is predicted from other jobs of its type.',
  'What a handler does is not looked at: of a payload only its size is.',
  'Executions that failed or were cancelled teach nothing; one that timed out teaches that it takes at least as long.',
  'Inputs are up to five seconds old, and the sums of a queue of a million jobs up to a minute.',
  'Of a batch with more than 200 series the rest goes without predictions by the model, and without an ETA.',
  'ETAs and ranks take the order to be the learned one, also where workers run with SMARTQUEUE_POLICY=fifo.',
  'A start is promised by the jobs that are queued and by what came in the last minute: a change of that, and workers that come or go, are not foreseen.',
  'An ETA at submission does not know the fairness keys of the jobs ahead, nor what other organisations will submit beyond what they did in the last minute.',
  'Work ahead is summed up by medians, and stretched by how much longer the last hundred executions took: that lags behind.',
]
