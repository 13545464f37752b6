import type { Job } from '../../api/answers.ts'
import type { Progress } from '../../live/frames.ts'
import { percent } from '../../ui/format.ts'
import { Panel } from '../../ui/panel.tsx'

/** What the handler says about how far it is. Of a job that has completed there is nothing to say. */
export const ProgressBar = ({ job, live }: { job: Job; live: Progress | null | undefined }) => {
  const progress = job.status === 'running' && live !== undefined ? live : job.progress
  if (!progress || job.status === 'completed') return null
  const { fraction, note } = progress
  return (
    <Panel title="Progress" wide>
      <div class="progress">
        <div
          class={`progress-track${fraction === null ? ' unknown' : ''}`}
          role="progressbar"
          aria-label={`Progress of ${job.name}`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={fraction === null ? undefined : Math.round(fraction * 100)}
          aria-valuetext={[fraction === null ? '' : percent(fraction, 0), note].filter(Boolean).join(', ')}
        >
          <span class="progress-bar" style={{ width: `${(fraction ?? 0) * 100}%` }} />
        </div>
        <span class="progress-number">{fraction === null ? '' : percent(fraction, 0)}</span>
        {note && <p class="muted">{note}</p>}
      </div>
    </Panel>
  )
}
