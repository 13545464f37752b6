import type { Attempt, Job, Page } from '../../api/answers.ts'
import type { Resource } from '../../api/use-resource.ts'
import { ChartFrame, Legend, type LegendEntry } from '../../charts/chart-frame.tsx'
import { now } from '../../ui/clock.ts'
import { DASH, duration, exactTime, relativeTime } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { Time } from '../../ui/time.tsx'
import {
  type Mark,
  type Run,
  type Timeline,
  ticksOf,
  timelineOf,
  type Wait,
  type WaitKind,
} from './timeline.ts'

/** Earlier attempts than these are in the table. */
const SHOWN = 12

/** From its creation to its end, with all attempts. */
export const TimelineChart = ({ job, attempts }: { job: Job; attempts: Resource<Page<Attempt>> }) => (
  <Loaded resource={attempts} bones={<Skeleton height="220px" />}>
    {({ items }) => {
      const timeline = timelineOf(job, items, now.value)
      const about = inWords(timeline)
      return (
        <ChartFrame
          title="Timeline"
          about={about}
          wide
          legend={<Legend entries={legendOf(timeline)} />}
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

const MARKS: Record<Mark['kind'], { name: string; color: string; dashed?: boolean }> = {
  now: { name: 'Now', color: 'text' },
  start: { name: 'Probable start', color: 'accent' },
  p50: { name: 'Predicted end, p50', color: 'accent', dashed: true },
  p90: { name: 'Predicted end, p90', color: 'amber', dashed: true },
  deadline: { name: 'Deadline', color: 'red' },
}

const legendOf = ({ marks, expected, toMs }: Timeline): LegendEntry[] => {
  const inSight = expected.filter(({ atMs }) => atMs <= toMs)
  return [...marks, ...inSight].map(({ kind, atMs }) => {
    const { name, ...look } = MARKS[kind]
    return { label: atMs > toMs ? `${name} ${relativeTime(atMs, now.value)}, off the axis` : name, ...look }
  })
}

const WAITS: Record<WaitKind, string> = {
  delayed: 'Not to start yet',
  blocked: 'Waiting for other jobs',
  waited: 'Waiting for other jobs, and queued',
  queued: 'Queued',
  backoff: 'Waiting to try again',
  snoozed: 'Snoozed',
  ended: 'Ended, until retried',
}

const nameOf = (row: Wait | Run): string =>
  'attempt' in row
    ? `Attempt ${row.attempt.attempt}, ${row.attempt.outcome.replace('_', ' ')}`
    : WAITS[row.kind]

const tookOf = (row: Wait | Run): string => {
  if (row.open) return `${duration(Math.floor((row.toMs - row.fromMs) / 1_000) * 1_000)} so far`
  return duration(('attempt' in row ? row.attempt.runtime_ms : null) ?? row.toMs - row.fromMs)
}

const errorOf = ({ attempt: { error } }: Run): string => (error ? `${error.code}: ${error.message}` : '')

const inWords = ({ waits, runs }: Timeline): string => {
  const waitedMs = waits
    .filter(({ kind }) => kind !== 'ended')
    .reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)
  const isWaiting = waits.some(({ open }) => open)
  const isOpen = isWaiting || runs.some(({ open }) => open)
  const waited = duration(isWaiting ? Math.floor(waitedMs / 1_000) * 1_000 : waitedMs)
  const tries = runs.length === 1 ? 'one attempt' : `${runs.length} attempts`
  const made = runs.length === 0 ? 'no attempt' : tries
  return `${waited} of waiting and ${made}${isOpen ? ' so far' : ''}. The axis counts from its creation.`
}
