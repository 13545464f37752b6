import { Socket } from 'node:net'
import pg from 'pg'
import { JobError, type PostgresConnection } from '../handler-api.ts'
import { endOnServer } from './end-on-server.ts'
import { findConnection, type NamedConnections } from './named-connections.ts'

/**
 * The database sessions of one attempt. They end with it: when the attempt is aborted its sockets are destroyed, so that
 * what it waits for fails at once, and a statement that still runs is ended on the server, which would notice the loss
 * of its client only when it has an answer.
 */
export type JobSessions = {
  open(name: string): Promise<PostgresConnection>
  /** Resolves when they are ended, also on the server, or cannot be reached. Twice is safe. */
  close(): Promise<void>
}

const CONNECT_MS = 10_000
/** For a goodbye, and for ending a statement. What takes longer is given up. */
const GOODBYE_MS = 1_500

export const createJobSessions = (options: {
  connections: NamedConnections
  jobId: string
  orgId: string
  signal: AbortSignal
}): JobSessions => {
  const { signal } = options
  const applicationName = `smartqueue job ${options.jobId}`
  const sessions = new Set<Session>()
  let closing: Promise<void> | undefined

  const requireOpen = (): void => {
    signal.throwIfAborted()
    if (closing) throw new Error('The attempt has ended, and its database sessions with it.')
  }

  const open = async (name: string): Promise<PostgresConnection> => {
    requireOpen()
    const url = withoutName(findConnection(options.connections, name, options.orgId))
    const session = startSession(url, applicationName)
    sessions.add(session)
    try {
      await session.client.connect()
    } catch (error) {
      session.socket.destroy()
      sessions.delete(session)
      requireOpen()
      throw connectionFailed(name, error)
    }
    return {
      query: async (text, values) => {
        requireOpen()
        try {
          return await session.query(text, values)
        } catch (error) {
          signal.throwIfAborted()
          throw error
        }
      },
    }
  }

  const close = (): Promise<void> => {
    closing ??= Promise.all([...sessions].map((session) => endSession(session, applicationName))).then(
      () => {},
    )
    return closing
  }

  signal.addEventListener('abort', () => void close(), { once: true })
  return { open, close }
}

/** A name in the URL would hide whose session it is, also from what ends it. */
const withoutName = (text: string): string => {
  const url = new URL(text)
  if (!url.searchParams.has('application_name')) return text
  url.searchParams.delete('application_name')
  return url.href
}

type Session = {
  readonly url: string
  readonly client: pg.Client
  /** The client's own: destroyed, it takes everything with it at once. */
  readonly socket: Socket
  /** One after the other, as the server answers them. */
  query(text: string, values: readonly unknown[] | undefined): Promise<{ rows: never[]; rowCount: number }>
  isBusy(): boolean
}

const startSession = (url: string, applicationName: string): Session => {
  const socket = new Socket()
  const client = new pg.Client({
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    stream: () => socket,
  })
  // A connection that breaks while nothing is asked of it: the next statement says so. Unheard it ends the worker.
  client.on('error', () => {})
  let inFlight = 0
  let turn: Promise<unknown> = Promise.resolve()
  const send = async (text: string, values: readonly unknown[] | undefined) => {
    const answer = await client.query({ text, ...(values && { values: [...values] }) })
    // Several statements in one text are answered by several results.
    const { rows, rowCount } = Array.isArray(answer) ? (answer.at(-1) as pg.QueryResult) : answer
    return { rows: rows as never[], rowCount: rowCount ?? 0 }
  }
  return {
    url,
    client,
    socket,
    isBusy: () => inFlight > 0,
    query: (text, values) => {
      inFlight++
      const answer = turn.then(() => send(text, values)).finally(() => inFlight--)
      turn = answer.catch(() => {})
      return answer
    },
  }
}

const endSession = async (session: Session, applicationName: string): Promise<void> => {
  const { client, socket, url } = session
  const busy = session.isBusy()
  const pid = (client as unknown as { processID: number | null }).processID
  const closed = new Promise<unknown>((resolve) =>
    socket.closed ? resolve(undefined) : socket.once('close', resolve),
  )
  const impatient = setTimeout(() => socket.destroy(), GOODBYE_MS)
  if (busy || pid === null) socket.destroy()
  else client.end().catch(() => {})
  await Promise.all([
    closed,
    busy && pid !== null ? endOnServer(url, { pid, applicationName, timeoutMs: GOODBYE_MS }) : undefined,
  ])
  clearTimeout(impatient)
}

/** With the code alone, if there is one: messages that come with a code name hosts, addresses and logins. */
const connectionFailed = (name: string, error: unknown): JobError => {
  const { code, message } = error as { code?: string; message: string }
  const reason = error instanceof pg.DatabaseError ? `its server answered ${code}` : (code ?? message)
  return new JobError('connection_failed', `Could not connect to the database "${name}": ${reason}.`)
}
