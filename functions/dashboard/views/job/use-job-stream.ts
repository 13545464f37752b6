import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LogLine, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { createConnection } from '../../live/connection.ts'
import type { Frame, Progress } from '../../live/frames.ts'
import { append, EMPTY_LOG, LOG_START, type Log } from './log-lines.ts'

export type JobStream = {
  readonly log: Signal<Log>
  readonly isRead: Signal<boolean>
  readonly error: Signal<unknown>
  /** Undefined: the stream has not said anything yet. */
  readonly progress: Signal<Progress | null | undefined>
  readAgain(): void
}

const PAGE = 200

/** A connection for this job alone: its log is read page by page, and then goes on as it is written. */
export const useJobStream = (id: string, onChange: () => void): JobStream => {
  const log = useSignal<Log>(EMPTY_LOG)
  const isRead = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const progress = useSignal<Progress | null | undefined>(undefined)
  const tries = useSignal(0)
  const changed = useRef(onChange)
  changed.current = onChange

  useEffect(() => {
    const closing = new AbortController()
    const query = { topics: 'events,logs', job_id: id, log_cursor: LOG_START }
    const take = (lines: readonly LogLine[], next: string | null): void => {
      log.value = append(log.value, { lines, next })
      // Where a connection that comes back goes on.
      query.log_cursor = log.value.cursor
    }
    const onFrame = (frame: Frame): void => {
      if (frame.type === 'logs') take(frame.lines, frame.cursor)
      if (frame.type === 'progress') progress.value = frame.progress
    }
    const onNews = (): void => changed.current()
    const connection = createConnection({ query, onFrame, onEvents: onNews, onResync: onNews })
    const read = async (): Promise<void> => {
      let cursor: string | null = null
      do {
        const page: Page<LogLine> = await get(`/jobs/${id}/logs`, { limit: PAGE, cursor }, closing.signal)
        take(page.items, page.next_cursor)
        cursor = page.next_cursor
      } while (cursor !== null)
      isRead.value = true
      connection.open()
    }
    log.value = EMPTY_LOG
    error.value = undefined
    read().catch((reason: unknown) => {
      if (!closing.signal.aborted) error.value = reason
    })
    return () => {
      closing.abort()
      connection.close()
    }
  }, [id, tries.value])

  const readAgain = (): void => {
    tries.value++
  }
  return { log, isRead, error, progress, readAgain }
}
