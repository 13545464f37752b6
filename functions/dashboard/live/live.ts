/** The stream of the organisation, as long as somebody is signed in: what all views share. */
import { computed, effect, signal, untracked } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Leader, Summary, Worker } from '../api/answers.ts'
import { get } from '../api/api.ts'
import { user } from '../session/session.ts'
import { type Connection, createConnection, type LinkState } from './connection.ts'
import type { Frame, JobEvent } from './frames.ts'

export const summary = signal<Summary | undefined>(undefined)
export const workers = signal<{ workers: Worker[]; leader: Leader | null } | undefined>(undefined)
const connection = signal<Connection | undefined>(undefined)

export const link = computed<LinkState>(() => connection.value?.state.value ?? { kind: 'connecting' })

type Listener = { onEvents?: ((events: JobEvent[]) => void) | undefined; onResync?: (() => void) | undefined }
const listeners = new Set<Listener>()

const onFrame = (frame: Frame): void => {
  if (frame.type === 'summary') summary.value = frame.summary
  if (frame.type === 'workers') workers.value = frame
}

const orgId = computed(() => user.value?.org_id)

/** Keeps a connection to the active organisation. */
export const keepLive = (): (() => void) =>
  effect(() => {
    if (!orgId.value) return
    const own = createConnection({
      query: { topics: 'events,summary,workers' },
      onFrame,
      onEvents: (events) => {
        for (const listener of listeners) listener.onEvents?.(events)
      },
      onResync: () => {
        for (const listener of listeners) listener.onResync?.()
      },
    })
    untracked(() => {
      summary.value = undefined
      workers.value = undefined
      connection.value = own
      own.open()
      void showFirst(own)
    })
    return () => {
      own.close()
      connection.value = undefined
    }
  })

/** The numbers of the first paint need not wait for a connection. */
const showFirst = async (own: Connection): Promise<void> => {
  const first = await get<Summary>('/analytics/summary').catch(() => undefined)
  if (connection.peek() === own) summary.value ??= first
}

/** Tells a view of events while it is shown, and when it should look anew. */
export const useLive = (listener: Listener): void => {
  const newest = useRef(listener)
  newest.current = listener
  useEffect(() => {
    const own: Listener = {
      onEvents: (events) => newest.current.onEvents?.(events),
      onResync: () => newest.current.onResync?.(),
    }
    listeners.add(own)
    return () => {
      listeners.delete(own)
    }
  }, [])
}

/**
 * Reloads what a view shows when events that concern it have come: soon after the first, and not more often than every
 * `everyMs` however many there are.
 */
export const useReloadOnEvents = (
  reload: () => void,
  concerns: (event: JobEvent) => boolean = () => true,
  everyMs = 1_000,
): void => {
  const state = useRef({ timer: 0, lastMs: 0 })
  const soon = (): void => {
    const { current } = state
    if (current.timer) return
    const delayMs = Math.max(50, current.lastMs + everyMs - Date.now())
    current.timer = setTimeout(() => {
      current.timer = 0
      current.lastMs = Date.now()
      reload()
    }, delayMs)
  }
  useLive({
    onEvents: (events) => {
      if (events.some(concerns)) soon()
    },
    onResync: soon,
  })
  useEffect(() => () => clearTimeout(state.current.timer), [])
}
