import { useSignal } from '@preact/signals'
import type { Throughput as Answer } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { sinceFirst } from '../../charts/young-history.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { count } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { Segments } from '../../ui/segments.tsx'

const RANGES = [
  { value: '1h', label: '1 h' },
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
] as const

type Range = (typeof RANGES)[number]['value']

export const Throughput = () => {
  const range = useSignal<Range>('1h')
  const answer = useResource(
    (signal) => get<Answer>('/analytics/throughput', { range: range.value }, signal),
    [range.value],
  )
  useReloadOnEvents(answer.reload, undefined, 5_000)
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
            actions={
              <Segments
                label="Range"
                value={range.value}
                options={RANGES}
                onChange={(value) => {
                  range.value = value
                }}
              />
            }
          />
        )
      }}
    </Loaded>
  )
}

const BUCKETS: Record<number, string> = { 60: 'minute', 3600: 'hour', 21600: 'six hours' }
