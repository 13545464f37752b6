import { now } from './clock.ts'
import { DASH, exactTime, relativeTime } from './format.ts'

/** A relative time; the exact one shows on hover and is read to those who do not see. */
export const Time = ({ at }: { at: string | number | null | undefined }) => {
  if (at === null || at === undefined) return <span class="muted">{DASH}</span>
  const ms = new Date(at).getTime()
  return (
    <time dateTime={new Date(at).toISOString()} title={exactTime(at)} class="time">
      {relativeTime(ms, now.value)}
    </time>
  )
}
