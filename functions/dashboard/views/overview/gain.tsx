import type { SchedulingGain } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { useReloadOnEvents } from '../../live/live.ts'
import { counted, duration, percent } from '../../ui/format.ts'
import { Empty, Loaded, Skeleton } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'

const TITLE = 'Scheduling gain'

/** What the order by prediction is worth in waiting time. */
export const Gain = () => {
  const answer = useResource((signal) =>
    get<SchedulingGain>('/analytics/scheduling-gain', { range: '24h' }, signal),
  )
  useReloadOnEvents(answer.reload, undefined, 15_000)
  return (
    <Loaded resource={answer} bones={<Skeleton height="340px" />}>
      {(gain) =>
        gain.points.length === 0 ? (
          <Panel title={TITLE}>
            <Empty title="Not enough jobs have run yet">
              <p class="muted">
                Once jobs have waited for others, this compares how long with first come, first served.
              </p>
            </Empty>
          </Panel>
        ) : (
          <TimeChart
            title={TITLE}
            about={sentenceFor(gain)}
            times={gain.points.map(({ at }) => Date.parse(at))}
            series={[
              {
                label: 'Mean wait',
                color: 'green',
                kind: 'area',
                values: gain.points.map(({ mean_wait_ms }) => mean_wait_ms),
              },
              {
                label: 'First come, first served',
                color: 'muted',
                dashed: true,
                values: gain.points.map(({ fifo_mean_wait_ms }) => fifo_mean_wait_ms),
              },
            ]}
            format={duration}
          />
        )
      }
    </Loaded>
  )
}

const sentenceFor = ({ jobs, gain, mean_wait_ms, fifo_mean_wait_ms }: SchedulingGain): string => {
  const waits = `${duration(mean_wait_ms)} on average, first come, first served ${duration(fifo_mean_wait_ms)}`
  const judgement =
    gain === null ? '' : gain >= 0 ? `: ${percent(gain, 0)} less` : `: ${percent(-gain, 0)} more`
  return `${counted(jobs, 'job')} of the last 24 h waited ${waits}${judgement}.`
}
