/**
 * The jobs that are in memory, newest first. Ids are in the order of the list, so that a job is found by halving; and a page
 * is the truth about the stretch of ids that it covers, from where it was asked for to its last job. Nothing is changed in
 * place, and a row that has not changed stays the same object.
 */
import type { JobSummary, Page } from '../../api/answers.ts'
import type { JobEvent } from '../../live/frames.ts'
import { fits, type JobFilter } from './filter.ts'
import { firstAtOrBelow, firstBelow } from './newest-first.ts'
import { changedBy } from './row-change.ts'

export type JobList = {
  readonly rows: readonly JobSummary[]
  /** Where pages can begin. The last one is where the list goes on. */
  readonly places: readonly Place[]
  /** There is nothing older than the last row. */
  readonly complete: boolean
  /** Ids of jobs that belong among the rows and are not there yet. No more than `MAX_MISSING` are kept. */
  readonly missing: ReadonlySet<string>
  /** Some rows have stopped to fit. */
  readonly hasLeavers: boolean
}

/** After the job with the id. */
export type Place = { readonly id: string; readonly cursor: string }

export const MAX_MISSING = 1_000

export const EMPTY: JobList = {
  rows: [],
  places: [],
  complete: false,
  missing: new Set(),
  hasLeavers: false,
}

/** `after`: where the page was asked for; null for the top. */
export const mergePage = (list: JobList, page: Page<JobSummary>, after: Place | null): JobList => {
  const { rows } = list
  const last = page.items.at(-1)
  const end = last && page.next_cursor !== null ? { id: last.id, cursor: page.next_cursor } : undefined
  const above = after === null ? [] : rows.slice(0, firstBelow(rows, after.id))
  const below = end ? rows.slice(firstBelow(rows, end.id)) : []
  const isCovered = (id: string): boolean =>
    (after === null || id < after.id) && (end === undefined || id >= end.id)
  return {
    rows: [...above, ...page.items, ...below],
    places: [
      ...list.places.filter(({ id }) => after !== null && id >= after.id),
      ...(end ? [end] : []),
      ...list.places.filter(({ id }) => end !== undefined && id < end.id),
    ],
    complete: end === undefined || (list.complete && below.length > 0),
    missing: new Set([...list.missing].filter((id) => !isCovered(id))),
    hasLeavers: list.hasLeavers,
  }
}

/**
 * The newest page, read again. Where it does not reach down to what was there, the jobs between are not known, and the list
 * begins anew; it ends above a job that is still missing. Rows that have stopped to fit go.
 */
export const mergeTop = (list: JobList, page: Page<JobSummary>, filter: JobFilter): JobList => {
  const [last, newest] = [page.items.at(-1), list.rows[0]]
  const reaches = last !== undefined && newest !== undefined && newest.id >= last.id
  if (!reaches || list.missing.size >= MAX_MISSING) return mergePage(EMPTY, page, null)
  const merged = withoutGaps(mergePage(list, page, null))
  const covered = page.items.length
  const rows = merged.rows.filter((row, n) => n < covered || fits(filter, row))
  return { ...merged, rows, hasLeavers: false }
}

const withoutGaps = (list: JobList): JobList => {
  let newest = ''
  for (const id of list.missing) if (id > newest) newest = id
  const places = list.places.filter(({ id }) => id > newest)
  const last = places.at(-1)
  if (newest === '' || !last) return list
  const rows = list.rows.slice(0, firstBelow(list.rows, last.id))
  return { ...list, rows, places, complete: false, missing: new Set() }
}

/** What has happened, in the rows that are there. */
export const mergeEvents = (list: JobList, events: readonly JobEvent[], filter: JobFilter): JobList => {
  let rows: JobSummary[] | undefined
  let missing: Set<string> | undefined
  let { hasLeavers } = list
  const isMissing = (id: string): boolean => (missing ?? list.missing).has(id)
  for (const event of events) {
    const { id } = event.job
    const position = firstAtOrBelow(list.rows, id)
    const row = (rows ?? list.rows)[position]
    if (row?.id === id) {
      const changed = changedBy(row, event)
      if (changed === row) continue
      rows ??= list.rows.slice()
      rows[position] = changed
      hasLeavers ||= !fits(filter, changed)
    } else if (!fits(filter, event.job)) {
      if (!isMissing(id)) continue
      missing ??= new Set(list.missing)
      missing.delete(id)
    } else if ((position < list.rows.length || list.complete) && !isMissing(id)) {
      missing ??= new Set(list.missing)
      if (missing.size < MAX_MISSING) missing.add(id)
    }
  }
  if (!rows && !missing && hasLeavers === list.hasLeavers) return list
  return { ...list, rows: rows ?? list.rows, missing: missing ?? list.missing, hasLeavers }
}

/** From where to read, to see the row at the position again. Null: from the top. */
export const placeAbove = (list: JobList, position: number): Place | null => {
  const row = list.rows[position]
  if (!row) return null
  return list.places.findLast(({ id }) => id > row.id) ?? null
}
