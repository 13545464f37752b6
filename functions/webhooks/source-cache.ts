/**
 * Sources that deliveries have come for, kept for each isolate. What is kept may be old: the transaction that stores a
 * delivery enters with the version that it was verified under, and is not let in if that has changed. Values are kept and
 * not promises: on workerd those belong to the request that asked.
 */
import { findReceivingSource } from '../../db/queries/webhook-sources.ts'
import type { Database } from '../database.ts'
import { type ReceivingSource, toReceiving } from './receiving-source.ts'

export type SourceCache = {
  /** Undefined: there is none that is enabled. */
  find(id: string, maxAgeMs?: number): Promise<ReceivingSource | undefined>
  /** It has turned out to be old. */
  forget(id: string): void
}

const KEPT_MS = 60_000
/** Each may have 128 KiB of rules, and an isolate has 128 MB. */
const MAX_KEPT = 200
/** A flood of ids that are none asks the database once for each. */
const UNKNOWN_MS = 10_000
const MAX_UNKNOWN = 10_000

export const createSourceCache = (database: Database, now: () => number = Date.now): SourceCache => {
  const kept = new Map<string, { source: ReceivingSource; loadedAt: number }>()
  const unknown = new Map<string, number>()

  const load = async (id: string): Promise<ReceivingSource | undefined> => {
    const [row] = await database.run(findReceivingSource(id, null))
    kept.delete(id)
    if (!row) remember(unknown, MAX_UNKNOWN, id, now())
    // One that is disabled is asked for each time: enabled again it receives at once.
    if (!row?.enabled) return undefined
    const source = toReceiving(row)
    remember(kept, MAX_KEPT, id, { source, loadedAt: now() })
    return source
  }

  return {
    find: async (id, maxAgeMs = KEPT_MS) => {
      const one = kept.get(id)
      if (one && now() - one.loadedAt <= maxAgeMs) return one.source
      if (now() - (unknown.get(id) ?? Number.NEGATIVE_INFINITY) <= UNKNOWN_MS) return undefined
      return load(id)
    },
    forget: (id) => {
      kept.delete(id)
    },
  }
}

/** The one that was remembered longest ago makes room. */
const remember = <Value>(map: Map<string, Value>, most: number, id: string, value: Value): void => {
  map.delete(id)
  map.set(id, value)
  for (const oldest of map.keys()) {
    if (map.size <= most) break
    map.delete(oldest)
  }
}
