/**
 * Reads of jobs, in groups. A read is sent at once; those that the same caller makes while it is on its way wait, and go
 * together in the next one. So a single read is not delayed, and fifty at a time take few round trips.
 *
 * As for submissions (submitter.ts), I/O belongs to the request that started it: the first that waits sends the next group,
 * and `hold` keeps it alive if its client disconnects. If the runtime ends it anyway, the others read for themselves.
 */
import type { ReadJob } from '../../db/queries/job-facts.ts'
import type { Hold } from '../http/background.ts'

/** Reads the jobs with these ids. */
type Send = (ids: readonly string[]) => Promise<ReadJob[]>

export type ReadGroups = {
  /** `caller`: reads with the same one may be sent by each other. */
  read(caller: string, id: string, send: Send, hold: Hold): Promise<ReadJob | undefined>
}

type Waiting = {
  id: string
  answer: PromiseWithResolvers<ReadJob | undefined>
  /** It sends the next group. */
  takeTurn: () => void
}

const MAX_JOBS = 100
const PATIENCE_MS = 1_000

export const createReadGroups = (patienceMs = PATIENCE_MS): ReadGroups => {
  /** By caller: what waits while a group is on its way. */
  const lines = new Map<string, Waiting[]>()

  const sendGroup = async (group: readonly Waiting[], send: Send): Promise<void> => {
    try {
      const found = new Map((await send(group.map(({ id }) => id))).map((one) => [one.job.id, one]))
      for (const { id, answer } of group) answer.resolve(found.get(id))
    } catch (error) {
      for (const { answer } of group) answer.reject(error)
    }
  }

  const lead = async (caller: string, own: Waiting, send: Send): Promise<void> => {
    const line = lines.get(caller) ?? []
    await sendGroup([own, ...line.splice(0, MAX_JOBS - 1)], send)
    const next = line.shift()
    if (next) next.takeTurn()
    else if (lines.get(caller) === line) lines.delete(caller)
  }

  return {
    read: async (caller, id, send, hold) => {
      const line = lines.get(caller)
      const turn = Promise.withResolvers<'turn' | 'lost'>()
      const own = {
        id,
        answer: Promise.withResolvers<ReadJob | undefined>(),
        takeTurn: () => turn.resolve('turn'),
      }
      // Whoever has read for itself does not await it any more.
      own.answer.promise.catch(() => {})
      if (!line) {
        lines.set(caller, [])
        hold(lead(caller, own, send))
        return own.answer.promise
      }
      line.push(own)
      const timer = setTimeout(() => turn.resolve('lost'), patienceMs)
      const first = await Promise.race([
        turn.promise,
        own.answer.promise.then(() => 'answered' as const),
      ]).finally(() => clearTimeout(timer))
      if (first === 'turn') hold(lead(caller, own, send))
      if (first === 'lost') {
        if (lines.get(caller) === line) lines.delete(caller)
        await sendGroup([own], send)
      }
      return own.answer.promise
    },
  }
}
