import { setTimeout as delay } from 'node:timers/promises'
import type { Edge } from './edge.ts'
import { openStream, type StreamClient, type StreamedEvent } from './stream.ts'

type JobState = { status: string; attempts: number }

export type StreamFollower = {
  /** What the client knows about each job, by id. */
  readonly jobs: ReadonlyMap<string, JobState>
  /** Events since the last resync. */
  readonly events: readonly StreamedEvent[]
  /** Where the last resync, or the first connection, started. */
  readonly start: string
  /** Reasons of the resyncs so far. */
  readonly resyncs: readonly string[]
  stop(): Promise<void>
}

const RETRY_MS = 100

/**
 * A client that follows the stream as docs/stream.md describes: it reconnects from its cursor, and after a
 * resync it discards its state, loads all jobs, and then applies the events that arrived since.
 */
export const followStream = async (edge: Edge, token: string): Promise<StreamFollower> => {
  const jobs = new Map<string, JobState>()
  const resyncs: string[] = []
  let events: StreamedEvent[] = []
  let [start, cursor] = ['', '']
  let client: StreamClient | undefined
  let stopped = false
  /** Set while jobs are being loaded; events wait until that is done. */
  let loading: object | undefined

  const apply = ({ job: { id, status, attempts } }: StreamedEvent): void =>
    void jobs.set(id, { status, attempts })

  const load = async (): Promise<void> => {
    const own = {}
    loading = own
    const found = await loadJobs(edge, token, () => stopped || loading !== own)
    // Another resync arrived in the meantime and loads them again.
    if (loading !== own) return
    loading = undefined
    jobs.clear()
    for (const { id, status, attempts } of found) jobs.set(id, { status, attempts })
    for (const event of events) apply(event)
  }

  const startAt = (place: string): void => {
    events = []
    start = place
    void load()
  }

  const connect = async (): Promise<void> => {
    client = await openStream(edge, {
      token,
      query: cursor ? { cursor } : {},
      onFrame: (frame) => {
        if (frame.type === 'hello' && cursor === '') startAt(frame.cursor)
        if (frame.type === 'resync') {
          resyncs.push(frame.reason)
          startAt(frame.cursor)
        }
        for (const event of (frame.events ?? []) as StreamedEvent[]) {
          events.push(event)
          if (!loading) apply(event)
        }
        cursor = frame.cursor ?? frame.events?.at(-1).cursor ?? cursor
      },
    })
  }

  const keepConnected = async (): Promise<void> => {
    while (!stopped) {
      await client?.closed
      if (!stopped) await connect().catch(() => delay(RETRY_MS))
    }
  }

  await connect()
  const connected = keepConnected()
  return {
    jobs,
    resyncs,
    get events() {
      return events
    },
    get start() {
      return start
    },
    stop: () => {
      stopped = true
      client?.close()
      return connected
    },
  }
}

/** Retries while the database is unavailable. */
const loadJobs = async (
  edge: Edge,
  token: string,
  isOver: () => boolean,
): Promise<(JobState & { id: string })[]> => {
  const found: (JobState & { id: string })[] = []
  let query = 'limit=200'
  while (!isOver()) {
    const answer = await edge.request('GET', `/jobs?${query}`, { token })
    if (answer.status !== 200) {
      await delay(RETRY_MS)
      continue
    }
    found.push(...answer.body.items)
    if (answer.body.next_cursor === null) break
    query = `limit=200&cursor=${encodeURIComponent(answer.body.next_cursor)}`
  }
  return found
}
