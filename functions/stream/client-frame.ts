import { MOST_CREDIT } from './subscriber.ts'

/** What a client may send. A pong has no meaning of its own: whatever arrives shows that there is somebody. */
export type ClientFrame = { type: 'credit'; n: number } | { type: 'ping' | 'pong' }

const LONGEST = 200

/** Undefined: it is none. */
export const readClientFrame = (message: string | ArrayBuffer): ClientFrame | undefined => {
  if (typeof message !== 'string' || message.length > LONGEST) return undefined
  const frame = parse(message)
  if (frame?.type === 'ping' || frame?.type === 'pong') return { type: frame.type }
  const n = frame?.n
  if (frame?.type !== 'credit' || typeof n !== 'number') return undefined
  return Number.isInteger(n) && n >= 1 && n <= MOST_CREDIT ? { type: 'credit', n } : undefined
}

const parse = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

export const BAD_FRAME = `Send {"type":"credit","n":1…${MOST_CREDIT}}, or "ping".`
