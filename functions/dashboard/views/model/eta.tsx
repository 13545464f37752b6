import type { ModelCard } from '../../api/answers.ts'
import { count, percent, seconds } from '../../ui/format.ts'
import { Empty } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'

/** Whether jobs started when they were promised to. */
export const Eta = ({ eta }: { eta: ModelCard['eta'] }) => (
  <Panel
    title="Promised starts"
    about="How well the ETA of your newest jobs was kept, whatever type and range."
  >
    {eta.jobs === 0 ? (
      <Empty title="No job with an ETA has ended yet">
        <p class="muted">Jobs get one when they are submitted while a worker runs.</p>
      </Empty>
    ) : (
      <dl class="facts">
        <dt>Jobs that were looked at</dt>
        <dd>{count(eta.jobs)}</dd>
        <dt>Half of them were off by less than</dt>
        <dd>{seconds(eta.median_abs_error_s)}</dd>
        <dt>Off by, on average</dt>
        <dd>{seconds(eta.mean_abs_error_s)}</dd>
        <dt>Ended by their p90</dt>
        <dd>{percent(eta.within_p90)}, 90 % is right</dd>
      </dl>
    )}
  </Panel>
)
