import pg from 'pg'
import { beginTerm, confirmTerm, endSilentLeader, tryToLead } from '../db/queries/leader.ts'
import type { Query } from '../db/query.ts'
import type { Logger } from './logger.ts'
import { createPoller } from './poller.ts'

export type Leadership = {
  start(): void
  /** The term, while this worker leads. */
  term(): string | undefined
  stop(): Promise<void>
}

const LEADER_MS = 400
const STANDBY_MS = 300
/** A leader that has not confirmed its term for this long is taken for gone. */
const SILENT_MS = 1_200

/**
 * Leader election. The lock decides; the term fences what an old leader still tries to write.
 *
 * The lock is an advisory one of a session that this module owns alone. It is gone the moment the server sees that
 * session end. If the leader's host vanishes without closing its connection, or the process stands still, the server
 * sees nothing; so the leader confirms its term a few times a second, and a standby that finds its session silent ends
 * that and takes the lock. All times are the database's.
 */
export const createLeadership = (options: {
  url: string
  workerId: string
  applicationName: string
  logger: Logger
  onError: (error: Error) => void
}): Leadership => {
  let client: pg.Client | undefined
  let term: string | undefined

  const step = async (): Promise<number> => {
    try {
      client ??= await connect()
      await (term === undefined ? stand(client) : lead(client, term))
      return term === undefined ? STANDBY_MS : LEADER_MS
    } catch (error) {
      resign()
      throw error
    }
  }

  const connect = async (): Promise<pg.Client> => {
    const fresh = new pg.Client({
      connectionString: options.url,
      application_name: options.applicationName,
      keepAlive: true,
      connectionTimeoutMillis: 2_000,
      query_timeout: 2_000,
    })
    fresh.on('error', () => {
      if (client === fresh) resign()
    })
    await fresh.connect()
    return fresh
  }

  const stand = async (session: pg.Client): Promise<void> => {
    const [lock] = await ask(session, tryToLead())
    if (lock?.locked) {
      const [begun] = await ask(session, beginTerm(options.workerId))
      term = begun?.term
      // All that this session writes from now on is that it is alive, and a moment later it does so again.
      await session.query(`set synchronous_commit = off`)
      options.logger.info('leads', { worker_id: options.workerId, term })
      return
    }
    const [silent] = await ask(session, endSilentLeader(SILENT_MS))
    if (!silent) return
    options.logger.warn('ended the session of a silent leader', { worker_id: silent.worker_id })
    poller.wake()
  }

  const lead = async (session: pg.Client, current: string): Promise<void> => {
    const [confirmed] = await ask(session, confirmTerm(current))
    if (!confirmed) throw new Error(`Term ${current} is over: another worker leads`)
  }

  const resign = (): void => {
    if (term !== undefined) options.logger.warn('leads no more', { worker_id: options.workerId, term })
    term = undefined
    client?.end().catch(() => {})
    client = undefined
  }

  const poller = createPoller({ step, onError: options.onError, longestPauseMs: 500 })
  return {
    start: poller.start,
    term: () => term,
    stop: async () => {
      await poller.stop()
      term = undefined
      await client?.end().catch(() => {})
      client = undefined
    },
  }
}

const ask = async <Row>(session: pg.Client, query: Query<Row>): Promise<Row[]> => {
  const result = await session.query({ name: query.name, text: query.text, values: [...query.values] })
  return result.rows as Row[]
}
