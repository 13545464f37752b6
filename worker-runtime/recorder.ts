import { type EndedAttempt, endAttempts } from '../db/queries/leases.ts'
import type { Run } from '../db/query.ts'
import { isRefused, retryFor } from './database.ts'
import { LEASE_SECONDS } from './lease-keeper.ts'
import type { LogWriter } from './log-writer.ts'
import { toStorableJson } from './storable-json.ts'

export type Recorder = {
  /** Resolves once the end is stored: false if the lease was lost, and so nothing changed. */
  record(ended: EndedAttempt): Promise<boolean>
}

type Entry = { ended: EndedAttempt; settle: (recorded: boolean) => void }

const MAX_GROUP = 200

/**
 * Stores ends of attempts. An end is sent at once if none is on its way; those that come meanwhile wait and go
 * together in the next statement. So one job is not delayed, and many cost few round trips.
 */
export const createRecorder = (options: {
  run: Run
  logs: LogWriter
  onError: (error: Error) => void
}): Recorder => {
  let queue: Entry[] = []
  let busy = false

  const drain = async (): Promise<void> => {
    if (busy) return
    busy = true
    while (queue.length > 0) {
      const group = queue.slice(0, MAX_GROUP)
      queue = queue.slice(MAX_GROUP)
      await store(group)
    }
    busy = false
  }

  /** Until it is stored, or until the leases have run out and the jobs are someone else's anyway. */
  const store = async (group: Entry[]): Promise<void> => {
    const json = toStorableJson(group.map((entry) => entry.ended))
    try {
      const rows = await retryFor(LEASE_SECONDS * 1000, () => send(json), options.onError)
      const stored = new Set(rows.map((row) => row.job_id))
      for (const { ended, settle } of group) settle(stored.has(ended.job_id))
    } catch (error) {
      options.onError(error as Error)
      if (isRefused(error)) await storeEach(group)
      else settleAll(group, false)
    }
  }

  const send = async (json: string): Promise<{ job_id: string }[]> => {
    // Log lines first: they are accepted only while the lease is held.
    await options.logs.flush()
    return options.run(endAttempts(json))
  }

  /** Postgres will not take the statement as it is: find the value it objects to, and fail that job alone. */
  const storeEach = async (group: Entry[]): Promise<void> => {
    const [entry] = group
    if (group.length > 1) {
      for (const single of group) await store([single])
    } else if (entry?.ended.state === 'completed') {
      const { job_id, token } = entry.ended
      const error = {
        code: 'unstorable_result',
        message: 'The result of the handler cannot be stored as JSON.',
      }
      await store([{ ...entry, ended: { job_id, token, state: 'failed', error } }])
    } else {
      settleAll(group, false)
    }
  }

  const settleAll = (group: Entry[], recorded: boolean): void => {
    for (const { settle } of group) settle(recorded)
  }

  return {
    record: (ended) =>
      new Promise((settle) => {
        queue.push({ ended, settle })
        void drain()
      }),
  }
}
