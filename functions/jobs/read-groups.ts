/**
 * Batches reads of jobs. A read is sent at once if its caller has none in flight. Otherwise it waits, and all waiting reads go
 * in the next call. So a single read is not delayed, and fifty at a time take few round trips.
 *
 * As with submissions (submitter.ts), I/O belongs to the request that started it, so each call is sent by the first request
 * that waits. `hold` keeps a request alive whose client disconnects. If the runtime ends one anyway, the others time out and
 * read on their own.
 */
import type { ReadJob } from '../../db/queries/job-facts.ts'
import { PATIENCE_MS } from '../../db/rules/timeouts.ts'
import type { Hold } from '../http/background.ts'
import { newWaiting, settle, untilWoken, type Waiting } from './waiting.ts'

/** Reads the jobs with these ids. */
type Send = (ids: readonly string[]) => Promise<ReadJob[]>

export type ReadGroups = {
  /** Only reads of the same caller share a call. */
  read(caller: string, id: string, send: Send, hold: Hold): Promise<ReadJob | undefined>
}

type Entry = Waiting<ReadJob | undefined> & { id: string }

const MAX_JOBS = 100

/** Whoever waits for an answer waits longer than the sender of the call waits for the database. */
const PATIENCE = { turnMs: 5_000, answerMs: PATIENCE_MS + 5_000 }

export const createReadGroups = (patience = PATIENCE): ReadGroups => {
  /** By caller: what waits while a call is in flight. */
  const lines = new Map<string, Entry[]>()

  const takeTurn = async (caller: string, own: Entry, send: Send): Promise<void> => {
    const line = lines.get(caller)
    if (!line) {
      const next: Entry[] = []
      lines.set(caller, next)
      return lead(caller, next, own, send)
    }
    line.push(own)
    await untilWoken(own, patience.turnMs)
    if (!own.sent) return lead(caller, line, own, send)
    if (!own.settled) await untilWoken(own, patience.answerMs)
    if (!own.settled) await sendGroup([own], send)
  }

  const lead = async (caller: string, line: Entry[], own: Entry, send: Send): Promise<void> => {
    const others = line.splice(0).filter((entry) => entry !== own)
    line.push(...others.splice(MAX_JOBS - 1))
    await sendGroup([own, ...others], send)
    const [next] = line
    if (next) next.wake()
    else if (lines.get(caller) === line) lines.delete(caller)
  }

  return {
    read: (caller, id, send, hold) => {
      const own: Entry = { ...newWaiting(), id }
      hold(takeTurn(caller, own, send))
      return own.answer.promise
    },
  }
}

const sendGroup = async (group: readonly Entry[], send: Send): Promise<void> => {
  for (const entry of group) entry.sent = true
  try {
    const found = new Map(
      (await send([...new Set(group.map(({ id }) => id))])).map((one) => [one.job.id, one]),
    )
    for (const entry of group) settle(entry, ({ resolve }) => resolve(found.get(entry.id)))
  } catch (error) {
    for (const entry of group) settle(entry, ({ reject }) => reject(error))
  }
}
