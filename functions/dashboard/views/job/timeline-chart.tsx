import type { Attempt, Job } from '../../api/answers.ts'
import type { Resource } from '../../api/use-resource.ts'
import { ChartFrame, Legend } from '../../charts/chart-frame.tsx'
import { now } from '../../ui/clock.ts'
import { DASH, duration, exactTime } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { Time } from '../../ui/time.tsx'
import { type Mark, type Run, type Timeline, ticksOf, timelineOf, type Wait } from './timeline.ts'
import { errorOf, inWords, legendOf, MARKS, nameOf, tookOf } from './timeline-words.ts'

/** Earlier attempts than these are in the table. */
const SHOWN = 12

/** From its creation to its end, with all attempts. */
export const TimelineChart = ({ job, attempts }: { job: Job; attempts: Resource<Attempt[]> }) => (
  <Loaded resource={attempts} bones={<Skeleton height="220px" />}>
    {(items) => {
      const timeline = timelineOf(job, items, now.value)
      const about = inWords(timeline)
      return (
        <ChartFrame
          title="Timeline"
          about={about}
          wide
          legend={<Legend entries={legendOf(timeline, now.value)} />}
          rows={[...timeline.waits, ...timeline.runs].toSorted((a, b) => a.fromMs - b.fromMs)}
          keyOf={(row) => `${'attempt' in row} ${row.fromMs}`}
          columns={[
            { title: 'What', cell: nameOf },
            { title: 'From', cell: ({ fromMs }) => <Time at={fromMs} /> },
            { title: 'Took', numeric: true, cell: tookOf },
            {
              title: 'Worker',
              minor: true,
              cell: (row) => ('attempt' in row ? row.attempt.worker_id : DASH),
            },
            { title: 'Error', minor: true, cell: (row) => ('attempt' in row ? errorOf(row) : '') },
          ]}
        >
          <Chart timeline={timeline} label={`Timeline. ${about}`} />
        </ChartFrame>
      )
    }}
  </Loaded>
)

const Chart = ({ timeline, label }: { timeline: Timeline; label: string }) => {
  const { fromMs, toMs, waits, runs, marks, expected } = timeline
  const share = (ms: number): number => (ms - fromMs) / (toMs - fromMs)
  const shown = runs.slice(-SHOWN)
  const row = (name: string, bars: readonly (Wait | Run)[], others: readonly Mark[]) => (
    <div class="timeline-row" key={bars[0]?.fromMs ?? name}>
      <span class="timeline-name">{name}</span>
      <span class="timeline-track">
        {bars.map((bar) => (
          <span
            key={bar.fromMs}
            class={`timeline-bar ${'attempt' in bar ? bar.attempt.outcome : bar.kind}${bar.open ? ' open' : ''}`}
            style={{
              left: percentOf(share(bar.fromMs)),
              width: percentOf(share(bar.toMs) - share(bar.fromMs)),
            }}
            title={`${nameOf(bar)}: ${tookOf(bar)}, from ${exactTime(bar.fromMs)}`}
          />
        ))}
        {[...marks, ...others]
          .filter(({ atMs }) => share(atMs) <= 1)
          .map(({ kind, atMs }) => (
            <span
              key={kind}
              class={`timeline-mark ${kind}`}
              style={{ left: percentOf(share(atMs)) }}
              title={`${MARKS[kind].name}: ${exactTime(atMs)}`}
            />
          ))}
      </span>
    </div>
  )
  return (
    <div class="timeline" role="img" aria-label={label}>
      {row('Waiting', waits, runs.length === 0 ? expected : [])}
      {shown.map((run, n) => row(nameOf(run), [run], n === shown.length - 1 ? expected : []))}
      <div class="timeline-row axis">
        <span class="timeline-name">{runs.length > SHOWN ? 'Earlier ones: in the table' : ''}</span>
        <span class="timeline-track">
          {ticksOf(timeline).map((ms) => (
            <span key={ms} class="timeline-tick" style={{ left: percentOf(share(fromMs + ms)) }}>
              {ms === 0 ? '0' : duration(ms)}
            </span>
          ))}
        </span>
      </div>
    </div>
  )
}

const percentOf = (share: number): string => `${Math.max(0, Math.min(1, share)) * 100}%`
