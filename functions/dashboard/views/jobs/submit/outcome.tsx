import type { Forecast } from '../../../api/answers.ts'
import { Badge } from '../../../ui/badges.tsx'
import { duration } from '../../../ui/format.ts'
import { Time } from '../../../ui/time.tsx'

const SOURCES: Record<Forecast['prediction']['source'], string> = {
  lstm: 'the model',
  series: 'runs of the same name',
  type: 'runs of the type',
  default: 'nothing yet: a guess',
}

/** What would be answered if it were submitted now. */
export const Outcome = ({ forecast, hint }: { forecast: Forecast | undefined; hint: string }) => (
  <section class="outcome" aria-label="Prediction">
    <h3>Prediction</h3>
    {forecast ? <Facts forecast={forecast} /> : <p class="muted">{hint}</p>}
  </section>
)

const Facts = ({
  forecast: { prediction, eta, priority_score, deadline_at_risk },
}: {
  forecast: Forecast
}) => (
  <>
    <p class="outcome-runtime" aria-live="polite">
      <strong>{duration(prediction.p50_ms)}</strong>
      <span class="muted">9 of 10 below {duration(prediction.p90_ms)}</span>
    </p>
    <dl class="facts">
      <dt>Learned from</dt>
      <dd>{SOURCES[prediction.source]}</dd>
      {prediction.model_version !== null && (
        <>
          <dt>Model</dt>
          <dd>version {prediction.model_version}</dd>
        </>
      )}
      <dt>Starts</dt>
      <dd>{eta ? <Time at={eta.start_at} /> : 'once a worker can run it'}</dd>
      {eta && (
        <>
          <dt>Ends</dt>
          <dd>
            <Time at={eta.finish_p50_at} />
          </dd>
          <dt>9 of 10 end</dt>
          <dd>
            <Time at={eta.finish_p90_at} />
          </dd>
        </>
      )}
      <dt>Priority score</dt>
      <dd title="How soon its turn comes, 1 being the soonest">{priority_score.toFixed(3)}</dd>
    </dl>
    {deadline_at_risk && (
      <p>
        <Badge tone="red">deadline at risk</Badge> Started at once, it would probably end too late.
      </p>
    )}
  </>
)
