/**
 * What a subscriber is sent of a page of events. The rule that makes a resumed stream whole: its place moves past an event
 * only once the event was sent to it, or is not for it.
 */
import { isoTime } from '../../db/iso-time.ts'
import type { StreamEvent, StreamPage, StreamPlace } from '../../db/queries/stream.ts'
import { formatCursor } from './cursor.ts'
import { matches } from './filter.ts'
import { type Subscriber, wants } from './subscriber.ts'

/** An event with its text, which is made once for all that get it. */
export type ToldEvent = { event: StreamEvent; text: string }

export type ResyncReason = NonNullable<StreamPage['lost']> | 'slow' | 'burst'

/** Nobody can look at more at once: who is up to date and would get more, is told to look anew instead. */
const MOST_AT_ONCE = 5_000
/** Who is further behind than this is not caught up with. */
export const MOST_BEHIND = 20_000
/** How long somebody may take nothing of what there is. */
export const PATIENCE_MS = 30_000

const FRAME_EVENTS = 100

export const tellEvents = ({ events, head }: StreamPage): ToldEvent[] =>
  events.map((event) => ({ event, text: JSON.stringify(viewEvent(event, head.incarnation)) }))

const viewEvent = (event: StreamEvent, incarnation: string) => ({
  cursor: formatCursor({ ...event, incarnation }),
  type: `job.${event.state}`,
  job: {
    id: event.job_id,
    name: event.name,
    type: event.type,
    status: event.state,
    priority: event.priority,
    tags: event.tags,
    attempts: event.attempts,
  },
  at: isoTime(event.at),
  reason: event.reason,
})

/** Whether it should be read for: it takes events, or has taken none for too long. */
export const isDue = (subscriber: Subscriber, now: number): boolean =>
  !wants(subscriber, 'events') || subscriber.credit > 0 || isOutOfPatience(subscriber, now)

const isOutOfPatience = ({ starvedAt }: Subscriber, now: number): boolean =>
  starvedAt !== null && now - starvedAt >= PATIENCE_MS

/** The frames for a subscriber, who then stands where they end. */
export const deliver = (
  subscriber: Subscriber,
  page: StreamPage,
  events: readonly ToldEvent[],
  now: number,
): string[] => {
  // Data sent for other topics may have been undone, too.
  if (!wants(subscriber, 'events') && page.lost !== 'database_restarted') {
    subscriber.place = page.head
    return []
  }
  const reason = reasonToResync(subscriber, page)
  if (reason) return [resync(subscriber, page.head, reason, now)]
  const wanted = events.filter(({ event }) => matches(subscriber.filter, event))
  if (subscriber.credit === 0 && wanted.length > 0) return [resync(subscriber, page.head, 'slow', now)]
  const sent = wanted.slice(0, subscriber.credit)
  const last = sent.at(-1)
  const isCutShort = sent.length < wanted.length
  subscriber.credit -= sent.length
  subscriber.place = isCutShort && last ? placeOf(last.event, page) : page.next
  if (subscriber.credit === 0) {
    subscriber.starvedAt = now
    subscriber.pace = 'slow'
  } else if (!page.more) subscriber.pace = 'live'
  return toFrames(sent)
}

const placeOf = ({ xid, id, position }: StreamEvent, { head }: StreamPage): StreamPlace => ({
  ...{ incarnation: head.incarnation, xid, id, position },
})

const reasonToResync = ({ pace }: Subscriber, page: StreamPage): ResyncReason | undefined => {
  if (page.lost) return page.lost
  if (page.behind <= (pace === 'live' ? MOST_AT_ONCE : MOST_BEHIND)) return undefined
  return ({ live: 'burst', resuming: 'cursor_too_old', slow: 'slow' } as const)[pace]
}

/** Passes over everything up to a place. */
export const resync = (
  subscriber: Subscriber,
  head: StreamPlace,
  reason: ResyncReason,
  now: number,
): string => {
  subscriber.place = head
  subscriber.pace = 'live'
  if (subscriber.starvedAt !== null) subscriber.starvedAt = now
  return JSON.stringify({ type: 'resync', cursor: formatCursor(head), reason })
}

const toFrames = (events: readonly ToldEvent[]): string[] => {
  const frames: string[] = []
  for (let first = 0; first < events.length; first += FRAME_EVENTS) {
    const texts = events.slice(first, first + FRAME_EVENTS).map(({ text }) => text)
    frames.push(`{"type":"events","events":[${texts.join(',')}]}`)
  }
  return frames
}
