import type { PredictionAccuracy } from '../../api/answers.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { duration } from '../../ui/format.ts'
import { Empty } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { differenceOf, errorText, factorText } from './words.ts'

const TITLE = 'Accuracy over time'

/** Errors of the organisation's predictions, beside those of the running mean. */
export const AccuracyOverTime = ({ accuracy }: { accuracy: PredictionAccuracy }) => {
  const { points } = accuracy
  if (points.length < 2) {
    return (
      <Panel title={TITLE}>
        <Empty title="A line needs a second point">
          <p class="muted">
            There is one for every {duration(accuracy.bucket_seconds * 1_000)} in which jobs completed.
            {points[0] && ` The first is ${errorText(points[0].mean_abs_log_error)}.`}
          </p>
        </Empty>
      </Panel>
    )
  }
  return (
    <TimeChart
      title={TITLE}
      about={aboutOf(accuracy)}
      times={points.map(({ at }) => Date.parse(at))}
      height={330}
      series={[
        {
          label: 'Predicted',
          color: 'accent',
          kind: 'area',
          values: points.map(({ mean_abs_log_error }) => mean_abs_log_error),
        },
        {
          label: 'Running mean of a series',
          color: 'muted',
          dashed: true,
          values: points.map(({ baseline_mean_abs_log_error }) => baseline_mean_abs_log_error),
        },
      ]}
      format={errorText}
    />
  )
}

const aboutOf = ({ overall, points }: PredictionAccuracy): string => {
  const error = overall.mean_abs_log_error
  if (error === null) return 'Mean absolute error of ln(runtime): lower is better.'
  const compared = points.filter((point) => point.baseline_mean_abs_log_error !== null)
  const jobs = compared.reduce((sum, point) => sum + point.jobs, 0)
  const mean = (of: (point: (typeof points)[number]) => number): number =>
    compared.reduce((sum, point) => sum + of(point) * point.jobs, 0) / jobs
  const difference =
    jobs > 0
      ? `, ${differenceOf(
          mean((point) => point.mean_abs_log_error),
          mean((point) => point.baseline_mean_abs_log_error ?? 0),
        )} than the running mean`
      : ''
  return `Mean absolute error of ln(runtime): ${error.toFixed(2)} is to be off by ${factorText(error)}${difference}.`
}
