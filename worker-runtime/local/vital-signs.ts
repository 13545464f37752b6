import pg from 'pg'
import { createPoller, type Poller } from '../poller.ts'
import { isRunning } from './process-group.ts'

const INTERVAL_MS = 1_000
const TIMEOUT_MS = 5_000
const MAX_MISSES = 3

export type VitalSign = { part: string; check: () => Promise<void> }

/**
 * Finds parts that have died without their process ending: workerd killed behind wrangler's back, or a Postgres
 * that was told to shut down and waits for its clients.
 */
export const watchVitalSigns = (
  signs: VitalSign[],
  onDead: (part: string, reason: string) => void,
): Poller => {
  const misses = new Map<string, number>()

  const examine = async ({ part, check }: VitalSign): Promise<void> => {
    try {
      await check()
      misses.delete(part)
    } catch (error) {
      const count = (misses.get(part) ?? 0) + 1
      misses.set(part, count)
      if (count >= MAX_MISSES) onDead(part, `does not answer (${(error as Error).message})`)
    }
  }

  const step = async (): Promise<number> => {
    await Promise.all(signs.map(examine))
    return INTERVAL_MS
  }
  return createPoller({ step, onError: () => {} })
}

/** Dead is who refuses. Who only takes long may be rebuilding after an edit, or the machine is asleep. */
export const httpAnswers = (url: string) => async (): Promise<void> => {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    await response.body?.cancel()
  } catch (error) {
    if ((error as Error).name !== 'TimeoutError') throw error
  }
}

export const postgresAnswers = (url: string) => async (): Promise<void> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS })
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (error) {
    // Without a code it is pg's own: the time was up.
    if ((error as { code?: string }).code) throw error
  }
  await client.end().catch(() => {})
}

export const stillRuns = (pids: number[]) => async (): Promise<void> => {
  if (!pids.every(isRunning)) throw new Error('its process has ended')
}
