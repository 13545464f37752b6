import type { Throughput as Answer } from '../../api/answers.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { sinceFirst } from '../../charts/young-history.ts'
import { count } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { RANGES, useRange } from './use-range.tsx'

export const Throughput = () => {
  const { answer, choice } = useRange<Answer>('/analytics/throughput', RANGES)
  return (
    <Loaded resource={answer} bones={<Skeleton height="340px" />}>
      {({ items: all, bucket_seconds }) => {
        const items = sinceFirst(
          all,
          ({ submitted, completed, failed }) => submitted + completed + failed === 0,
        )
        return (
          <TimeChart
            title="Throughput"
            about={`Jobs that ended, for each ${BUCKETS[bucket_seconds] ?? 'interval'}. The last one is not over.`}
            unit="jobs"
            times={items.map(({ at }) => Date.parse(at))}
            series={[
              {
                label: 'Completed',
                color: 'green',
                kind: 'area',
                values: items.map(({ completed }) => completed),
              },
              { label: 'Failed', color: 'red', values: items.map(({ failed }) => failed) },
              {
                label: 'Submitted',
                color: 'muted',
                dashed: true,
                values: items.map(({ submitted }) => submitted),
              },
            ]}
            format={count}
            counted
            actions={choice}
          />
        )
      }}
    </Loaded>
  )
}

const BUCKETS: Record<number, string> = { 60: 'minute', 3600: 'hour', 21600: 'six hours' }
