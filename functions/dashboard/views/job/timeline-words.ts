import type { LegendEntry } from '../../charts/chart-frame.tsx'
import { duration, relativeTime } from '../../ui/format.ts'
import { elapsed } from './elapsed.ts'
import type { Mark, Run, Timeline, Wait, WaitKind } from './timeline.ts'

export const MARKS: Record<Mark['kind'], { name: string; color: string; dashed?: boolean }> = {
  now: { name: 'Now', color: 'text' },
  start: { name: 'Probable start', color: 'accent' },
  p50: { name: 'Predicted end, p50', color: 'accent', dashed: true },
  p90: { name: 'Predicted end, p90', color: 'amber', dashed: true },
  deadline: { name: 'Deadline', color: 'red' },
}

export const legendOf = ({ marks, expected, toMs }: Timeline, nowMs: number): LegendEntry[] => {
  const inSight = expected.filter(({ atMs }) => atMs <= toMs)
  return [...marks, ...inSight].map(({ kind, atMs }) => {
    const { name, ...look } = MARKS[kind]
    return { label: atMs > toMs ? `${name} ${relativeTime(atMs, nowMs)}, off the axis` : name, ...look }
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

export const nameOf = (row: Wait | Run): string =>
  'attempt' in row
    ? `Attempt ${row.attempt.attempt}, ${row.attempt.outcome.replace('_', ' ')}`
    : WAITS[row.kind]

export const tookOf = (row: Wait | Run): string => {
  if (row.open) return `${elapsed(row.toMs - row.fromMs)} so far`
  return duration(('attempt' in row ? row.attempt.runtime_ms : null) ?? row.toMs - row.fromMs)
}

export const errorOf = ({ attempt: { error } }: Run): string =>
  error ? `${error.code}: ${error.message}` : ''

export const inWords = ({ waits, runs }: Timeline): string => {
  const waitedMs = waits
    .filter(({ kind }) => kind !== 'ended')
    .reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)
  const isWaiting = waits.some(({ open }) => open)
  const isOpen = isWaiting || runs.some(({ open }) => open)
  const waited = isWaiting ? elapsed(waitedMs) : duration(waitedMs)
  const tries = runs.length === 1 ? 'one attempt' : `${runs.length} attempts`
  const made = runs.length === 0 ? 'no attempt' : tries
  return `${waited} of waiting and ${made}${isOpen ? ' so far' : ''}. The axis counts from its creation.`
}
