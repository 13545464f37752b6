/**
 * Keeps the list of jobs true while somebody looks at it: events change rows at once, pages are read as one scrolls, and the
 * top is read again when jobs have come that are not there yet. One request at a time; which one is decided when the one
 * before has ended, by what is in view then. Nothing moves under the reader: the top is left alone unless it is in view.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { JobSummary, Page } from '../../api/answers.ts'
import type { JobEvent } from '../../live/frames.ts'
import type { JobFilter } from './filter.ts'
import { EMPTY, type JobList, mergeEvents, mergePage, mergeTop, type Place, placeAbove } from './job-list.ts'

/** What is on the screen. `held`: somebody is about to point at a row, and new ones would move it away. */
export type InView = { first: number; end: number; atTop: boolean; held: boolean }

export type JobFeed = {
  /** Undefined until the first page is there. */
  readonly list: ReadonlySignal<JobList | undefined>
  readonly error: ReadonlySignal<Error | undefined>
  start(): void
  stop(): void
  take(events: readonly JobEvent[]): void
  /** Events were passed over: what is in view is read again, and the rest when it comes into view. */
  resync(): void
  look(view: InView): void
  /** Reads what is due now, without waiting any longer. */
  hurry(): void
}

/** How close the end may come before the next page is read. */
const AHEAD_ROWS = 60
const TOP_EVERY_MS = 1_000
const RETRY_MS = 5_000

export const createJobFeed = (options: {
  filter: JobFilter
  load: (cursor: string | null, signal: AbortSignal) => Promise<Page<JobSummary>>
  /** Runs it before the next picture is drawn: however many events come, rows are drawn once for it. */
  nextFrame: (run: () => void) => void
  now?: () => number
}): JobFeed => {
  const { filter, load, nextFrame, now = Date.now } = options
  const list = signal<JobList | undefined>(undefined)
  const error = signal<Error | undefined>(undefined)
  const stopping = new AbortController()
  const stale = new Set<string>()
  let view: InView = { first: 0, end: 0, atTop: true, held: false }
  let pending: JobEvent[] = []
  /** Events since the request that is on its way was sent. */
  let meanwhile: JobEvent[] = []
  let reading = false
  let topReadAt = Number.NEGATIVE_INFINITY
  let waitUntil = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  const pump = async (): Promise<void> => {
    clearTimeout(timer)
    if (reading || stopping.signal.aborted) return
    const due = next()
    if (!due) return
    const delayMs = Math.max(waitUntil, due.notBefore) - now()
    if (delayMs > 0) {
      timer = setTimeout(pump, delayMs)
      return
    }
    reading = true
    await read(due.after)
    reading = false
    void pump()
  }

  /** What to read next, if anything: what is wrong on the screen first. */
  const next = (): { after: Place | null; notBefore: number } | undefined => {
    const current = list.peek()
    if (!current) return { after: null, notBefore: 0 }
    for (const position of [view.first, Math.max(view.first, view.end - 1)]) {
      const after = placeAbove(current, position)
      if (stale.has(keyOf(after))) return { after, notBefore: 0 }
    }
    const topIsOld = current.missing.size > 0 || current.hasLeavers
    if (topIsOld && view.atTop && !view.held) return { after: null, notBefore: topReadAt + TOP_EVERY_MS }
    const last = current.places.at(-1)
    const nearEnd = view.end > current.rows.length - AHEAD_ROWS
    return !current.complete && last && nearEnd ? { after: last, notBefore: 0 } : undefined
  }

  const read = async (after: Place | null): Promise<void> => {
    if (after === null) topReadAt = now()
    const wasStale = stale.delete(keyOf(after))
    flush()
    meanwhile = []
    try {
      let page = await load(after?.cursor ?? null, stopping.signal)
      // The search for rare jobs goes on where an empty page ends.
      while (page.items.length === 0 && page.next_cursor !== null) {
        page = await load(page.next_cursor, stopping.signal)
      }
      if (stopping.signal.aborted) return
      adopt(page, after, wasStale)
      error.value = undefined
    } catch (reason) {
      if (stopping.signal.aborted) return
      if (wasStale) stale.add(keyOf(after))
      error.value = reason as Error
      waitUntil = now() + RETRY_MS
    }
  }

  const adopt = (page: Page<JobSummary>, after: Place | null, wasStale: boolean): void => {
    const before = list.peek() ?? EMPTY
    const merged = after === null ? mergeTop(before, page, filter) : mergePage(before, page, after)
    // Where a page begins that did not before, what follows is as stale as what was read.
    const added = merged.places.find(({ id }) => id === page.items.at(-1)?.id)
    const isNew = added && added !== merged.places.at(-1) && !before.places.some(({ id }) => id === added.id)
    if (wasStale && isNew) stale.add(keyOf(added))
    // The page may have been read before they happened.
    pending = []
    list.value = mergeEvents(merged, meanwhile, filter)
  }

  const flush = (): void => {
    const current = list.peek()
    if (!current || pending.length === 0) return
    const events = pending
    pending = []
    list.value = mergeEvents(current, events, filter)
  }

  return {
    list,
    error,
    start: () => void pump(),
    stop: () => {
      stopping.abort()
      clearTimeout(timer)
    },
    take: (events) => {
      if (pending.length === 0) {
        nextFrame(() => {
          flush()
          void pump()
        })
      }
      pending.push(...events)
      if (reading) meanwhile.push(...events)
    },
    resync: () => {
      for (const place of [null, ...(list.peek()?.places ?? [])]) stale.add(keyOf(place))
      void pump()
    },
    look: (seen) => {
      view = seen
      void pump()
    },
    hurry: () => {
      topReadAt = Number.NEGATIVE_INFINITY
      waitUntil = 0
      void pump()
    },
  }
}

const keyOf = (place: Place | null): string => place?.id ?? 'top'
