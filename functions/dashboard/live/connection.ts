/**
 * One connection to the stream that heals itself: it comes back after a loss, from the cursor that it had reached, so that
 * nothing is missed and nothing comes twice. Where events were passed over, `onResync` says to look anew.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { post } from '../api/api.ts'
import type { Request } from '../api/send.ts'
import type { Frame, JobEvent } from './frames.ts'

export type LinkState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** Since when, and when it is tried again. */
  | { kind: 'lost'; sinceMs: number; retryAtMs: number }

export type Connection = {
  readonly state: ReadonlySignal<LinkState>
  open(): void
  close(): void
}

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000
/** The server says something at least every 25 s. */
const SILENCE_MS = 40_000
/** How many events are handled before the server may send as many more. */
const CREDIT_STEP = 64

export const createConnection = (options: {
  query: NonNullable<Request['query']>
  onFrame: (frame: Frame) => void
  onEvents: (events: JobEvent[]) => void
  /** What is shown may be old: look anew. Also after each return of the connection without a cursor. */
  onResync: () => void
}): Connection => {
  const state = signal<LinkState>({ kind: 'connecting' })
  let socket: WebSocket | undefined
  let cursor: string | undefined
  let handled = 0
  let failures = 0
  let wanted = false
  let timer: number | undefined
  let silence: number | undefined

  const connect = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (state.value.kind !== 'lost') state.value = { kind: 'connecting' }
    try {
      const { ticket } = await post<{ ticket: string }>('/jobs/stream/tickets')
      if (!wanted || socket) return
      attach(new WebSocket(address(), ['smartqueue.v1', `ticket.${ticket}`]))
    } catch {
      retry()
    }
  }

  const address = (): string => {
    const url = new URL('/jobs/stream', location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    for (const [name, value] of Object.entries({ ...options.query, cursor })) {
      if (value) url.searchParams.set(name, String(value))
    }
    return url.href
  }

  const attach = (fresh: WebSocket): void => {
    socket = fresh
    handled = 0
    fresh.onmessage = ({ data }) => {
      if (socket !== fresh) return
      listenOn()
      handle(JSON.parse(String(data)) as Frame)
    }
    fresh.onclose = ({ code }) => {
      if (socket !== fresh) return
      socket = undefined
      clearTimeout(silence)
      // A token that has ended is no loss: a new one is at hand.
      if (code === EXPIRED && failures === 0 && wanted) void connect()
      else retry()
    }
  }

  const handle = (frame: Frame): void => {
    if (frame.type === 'hello') {
      failures = 0
      if (cursor === undefined) {
        cursor = frame.cursor
        options.onResync()
      }
      state.value = { kind: 'live' }
    } else if (frame.type === 'events') {
      cursor = frame.events.at(-1)?.cursor ?? cursor
      options.onEvents(frame.events)
      giveCredit(frame.events.length)
    } else if (frame.type === 'resync') {
      cursor = frame.cursor
      options.onResync()
    } else if (frame.type === 'ping') {
      cursor = frame.cursor
      socket?.send('{"type":"pong"}')
    } else options.onFrame(frame)
  }

  const giveCredit = (events: number): void => {
    handled += events
    if (handled < CREDIT_STEP) return
    socket?.send(JSON.stringify({ type: 'credit', n: handled }))
    handled = 0
  }

  /** A connection whose other end has silently gone is ended here. */
  const listenOn = (): void => {
    clearTimeout(silence)
    silence = setTimeout(() => {
      const silent = socket
      socket = undefined
      silent?.close()
      retry()
    }, SILENCE_MS)
  }

  const retry = (): void => {
    if (!wanted) return
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures) * (0.75 + Math.random() / 2)
    failures++
    const sinceMs = state.value.kind === 'lost' ? state.value.sinceMs : Date.now()
    state.value = { kind: 'lost', sinceMs, retryAtMs: Date.now() + delayMs }
    clearTimeout(timer)
    timer = setTimeout(connect, delayMs)
  }

  /** The network is back, or somebody looks again: no need to wait. */
  const hurry = (): void => {
    if (wanted && !socket && timer !== undefined && !document.hidden) void connect()
  }

  return {
    state,
    open: () => {
      if (wanted) return
      wanted = true
      addEventListener('online', hurry)
      document.addEventListener('visibilitychange', hurry)
      void connect()
    },
    close: () => {
      wanted = false
      clearTimeout(timer)
      clearTimeout(silence)
      removeEventListener('online', hurry)
      document.removeEventListener('visibilitychange', hurry)
      const open = socket
      socket = undefined
      open?.close()
    },
  }
}

const EXPIRED = 4401
