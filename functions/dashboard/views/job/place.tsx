import type { Explanation } from '../../api/answers.ts'
import { now } from '../../ui/clock.ts'
import { count, counted, percent, seconds } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'

/** Where it stands in the queue, and when it will probably start and end. */
export const Place = ({
  explanation: { rank, ahead, lane, eta, priority_score, status },
}: {
  explanation: Explanation
}) => (
  <dl class="facts">
    {ahead && rank !== null && (
      <>
        <dt>Place in the queue</dt>
        <dd>
          {ahead.counted ? '' : 'about '}
          {count(rank + 1)}
          {ahead.jobs > 0 && `, behind ${seconds(ahead.predicted_seconds)} of predicted work`}
        </dd>
      </>
    )}
    {lane && (
      <>
        <dt>Lane</dt>
        <dd>
          {lane.number}: {counted(lane.jobs, 'job')} of about its rank, {percent(lane.share, 0)} of the queued
          work
        </dd>
      </>
    )}
    {status !== 'cancelled' && (
      <>
        <dt>Priority score</dt>
        <dd>{priority_score.toFixed(2)} of 1</dd>
      </>
    )}
    {eta && (
      <>
        <dt>{status === 'running' ? 'Started' : 'Probably starts'}</dt>
        <dd>
          <Time at={eta.start_at} />
        </dd>
        <dt>Probably ends</dt>
        <dd>
          {Date.parse(eta.finish_p90_at) > now.value ? (
            <>
              <Time at={eta.finish_p50_at} /> (p90: <Time at={eta.finish_p90_at} />)
            </>
          ) : (
            'any moment: it takes longer than predicted'
          )}
        </dd>
      </>
    )}
  </dl>
)
