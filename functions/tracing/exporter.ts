import type { Hold } from '../http/background.ts'
import { log } from '../http/log.ts'
import { type Attributes, type FinishedSpan, toOtlp } from './otlp.ts'

export type Exporter = {
  /** Sends them soon, after the answer. Never throws, and never waits. */
  send(spans: readonly FinishedSpan[], hold: Hold): void
}

/** So long spans of other requests may join. */
const GATHER_MS = 200
const TIMEOUT_MS = 5_000
/** Beyond this many, while the receiver is slow, the newest are dropped. */
const MOST_WAITING = 2_048
const MOST_AT_ONCE = 512
/** No request works for others for longer: the runtime ends what goes on for half a minute after the answer. */
const LONGEST_MS = 10_000
/** Whoever took it on was ended all the same. */
const LOST_MS = 2 * TIMEOUT_MS

/**
 * What ends while one request sends is gathered, and goes with the next. On workerd I/O belongs to the request that
 * started it: so one of them takes it on, until nothing waits, or the receiver fails, or it has done enough. The next request
 * that ends takes on what is left.
 */
export const createExporter = (options: {
  url: string
  headers: Record<string, string>
  resource: Attributes
  now?: () => number
}): Exporter => {
  const { now = Date.now } = options
  const waiting: FinishedSpan[] = []
  let dropped = 0
  let takenAtMs: number | undefined
  let failing = false

  const post = async (spans: readonly FinishedSpan[]): Promise<void> => {
    const response = await fetch(options.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...options.headers },
      body: toOtlp(spans, options.resource),
      // An answer elsewhere is none: what the headers say is for this receiver.
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`it answered ${response.status}`)
  }

  /** One line when it begins to fail, and not one for each batch. */
  const tell = (error: unknown, lost: number): void => {
    dropped += lost
    if (!failing) log('warn', 'spans could not be exported', { error: String(error), spans: dropped })
    failing = true
  }

  const drain = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
    const until = now() + LONGEST_MS
    while (waiting.length > 0 && now() < until) {
      const batch = waiting.splice(0, MOST_AT_ONCE)
      takenAtMs = now()
      try {
        await post(batch)
        if (dropped > 0) log('warn', 'spans were dropped', { spans: dropped })
        dropped = 0
        failing = false
      } catch (error) {
        tell(error, batch.length)
        break
      }
    }
    takenAtMs = undefined
  }

  return {
    send: (spans, hold) => {
      const room = Math.max(0, MOST_WAITING - waiting.length)
      waiting.push(...spans.slice(0, room))
      dropped += Math.max(0, spans.length - room)
      if (takenAtMs !== undefined && now() - takenAtMs < LOST_MS) return
      takenAtMs = now()
      hold(drain())
    },
  }
}
