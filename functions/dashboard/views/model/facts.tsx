import type { ModelCard, PredictionAccuracy } from '../../api/answers.ts'
import { count, percent, seconds } from '../../ui/format.ts'
import { Panel } from '../../ui/panel.tsx'
import { errorText, factorText } from './words.ts'

/** Runtimes that were predicted and starts that were promised, in numbers. */
export const Facts = ({ accuracy, eta }: { accuracy: PredictionAccuracy; eta: ModelCard['eta'] }) => {
  const { overall, points } = accuracy
  return (
    <Panel title="In numbers">
      <h3 class="facts-title">Predicted runtimes</h3>
      <dl class="facts">
        <dt>Jobs that completed</dt>
        <dd>{count(overall.jobs)}</dd>
        <dt>Mean error</dt>
        <dd>
          {errorText(overall.mean_abs_log_error)}
          {overall.mean_abs_log_error !== null && `, ${factorText(overall.mean_abs_log_error)}`}
        </dd>
        <dt>Half were off by less than</dt>
        <dd>{percent(overall.median_ape, 0)} of what they took</dd>
        <dt>On the whole they took</dt>
        <dd>{biasText(points)}</dd>
      </dl>
      <h3 class="facts-title">Promised starts of your newest jobs</h3>
      {eta.jobs === 0 ? (
        <p class="muted">No job with an ETA has ended yet: they get one while a worker runs.</p>
      ) : (
        <dl class="facts">
          <dt>Jobs that completed</dt>
          <dd>{count(eta.jobs)}</dd>
          <dt>Half were off by less than</dt>
          <dd>{seconds(eta.median_abs_error_s)}</dd>
          <dt>Off by, on average</dt>
          <dd>{seconds(eta.mean_abs_error_s)}</dd>
          <dt>Ended by their p90</dt>
          <dd>{percent(eta.within_p90)}; 90 % is right</dd>
        </dl>
      )}
    </Panel>
  )
}

/** Above 0, jobs took longer than predicted. */
const biasText = (points: PredictionAccuracy['points']): string => {
  const jobs = points.reduce((sum, point) => sum + point.jobs, 0)
  if (jobs === 0) return '–'
  const bias = points.reduce((sum, point) => sum + point.bias_log * point.jobs, 0) / jobs
  const share = Math.expm1(bias)
  if (Math.abs(share) < 0.005) return 'as long as predicted'
  return `${percent(Math.abs(share), 0)} ${share > 0 ? 'longer' : 'less'} than predicted`
}
