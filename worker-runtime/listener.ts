import pg from 'pg'
import { listen, ping } from '../db/queries/notifications.ts'
import { createPoller } from './poller.ts'

export type Listener = { start(): void; stop(): Promise<void> }

const CHECK_MS = 15_000

/**
 * Hears what other processes say, on a connection of its own. What was said while the connection was down is lost,
 * so each new connection counts as news; the slow polls of the listeners' owners cover the rest.
 */
export const createListener = (options: {
  url: string
  applicationName: string
  onNotification: (channel: string, payload: string) => void
  onConnected: () => void
  onError: (error: Error) => void
}): Listener => {
  let client: pg.Client | undefined

  const connect = async (): Promise<void> => {
    const fresh = new pg.Client({
      connectionString: options.url,
      application_name: options.applicationName,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      query_timeout: 10_000,
    })
    fresh.on('notification', ({ channel, payload }) => options.onNotification(channel, payload ?? ''))
    fresh.on('error', options.onError)
    fresh.on('end', () => {
      if (client !== fresh) return
      client = undefined
      poller.wake()
    })
    try {
      await fresh.connect()
      await fresh.query(listen().text)
    } catch (error) {
      end(fresh)
      throw error
    }
    client = fresh
    options.onConnected()
  }

  // A query now and then finds a connection whose other end has silently gone.
  const check = async (): Promise<number> => {
    await client?.query(ping().text).catch(drop)
    if (!client) await connect()
    return CHECK_MS
  }

  const drop = (): void => {
    if (client) end(client)
    client = undefined
  }

  const poller = createPoller({ step: check, onError: options.onError })
  return {
    start: poller.start,
    stop: async () => {
      await poller.stop()
      drop()
    },
  }
}

/** Not awaited: a connection whose other end is gone would never confirm. */
const end = (client: pg.Client): void => void client.end().catch(() => {})
