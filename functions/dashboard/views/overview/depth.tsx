import type { QueueDepth } from '../../api/answers.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { sinceFirst } from '../../charts/young-history.ts'
import { count } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { RANGES, useRange } from './use-range.tsx'

/** What was queued, and what will probably be. */
export const Depth = () => {
  const { answer, choice } = useRange<QueueDepth>('/analytics/queue-depth', RANGES.slice(0, 3))
  return (
    <Loaded resource={answer} bones={<Skeleton height="340px" />}>
      {(depth) => (
        <TimeChart
          title="Queue depth"
          about="Jobs that wait or run, and how many will, by predicted work and recent arrivals."
          unit="jobs"
          {...plotOf(depth)}
          format={count}
          counted
          actions={choice}
        />
      )}
    </Loaded>
  )
}

const plotOf = ({ items: all, forecast }: QueueDepth) => {
  const items = sinceFirst(all, ({ ready, running }) => ready + running === 0)
  const none = <Item,>(list: Item[]): null[] => list.map(() => null)
  const last = items.at(-1)
  return {
    times: [...items, ...forecast].map(({ at }) => Date.parse(at)),
    series: [
      {
        label: 'Ready',
        color: 'blue',
        kind: 'area' as const,
        values: [...items.map(({ ready }) => ready), ...none(forecast)],
      },
      {
        label: 'Running',
        color: 'accent',
        values: [...items.map(({ running }) => running), ...none(forecast)],
      },
      {
        label: 'Forecast',
        color: 'amber',
        dashed: true,
        // From where it is now.
        values: [
          ...none(items.slice(1)),
          last ? last.ready + last.running : null,
          ...forecast.map(({ depth }) => depth),
        ],
      },
      {
        label: 'Forecast, 9 of 10 below',
        color: 'muted',
        dashed: true,
        values: [...none(items), ...forecast.map(({ depth_p90 }) => depth_p90)],
      },
    ],
  }
}
