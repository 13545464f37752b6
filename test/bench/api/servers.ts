import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../worker-runtime/local/ports.ts'
import type { ProcessGroup } from '../../../worker-runtime/local/process-group.ts'
import type { Reaper } from '../../../worker-runtime/local/reaper-link.ts'
import { buildFunctions, serveFunctions } from '../../../worker-runtime/local/workerd/server.ts'
import { withClient } from '../../../worker-runtime/migrate.ts'
import { logIn, signUp } from '../api-client.ts'
import { isInstalled } from '../peers/load.ts'
import { bullmq } from '../queue/bullmq.ts'
import { type Contender, JOB_TYPE, type Store } from '../queue/contender.ts'
import { loadBefore } from '../queue/contenders.ts'
import { graphileDefault } from '../queue/graphile.ts'
import { pgBoss } from '../queue/pg-boss.ts'
import { isRedisInstalled } from '../queue/redis-store.ts'
import { smartqueue, urlOf } from '../queue/smartqueue.ts'
import { keepToken } from './keep-token.ts'

/** An HTTP API under test. */
export type Server = {
  readonly name: string
  readonly origin: string
  readonly databaseUrl: string
  readonly store: Store
  /** Its own processes, beside those of the store. */
  readonly pids: Readonly<Record<string, number>>
  /** It has all routes, and not only those that the peers have. */
  readonly isSmartQueue: boolean
  /** One that does not expire within a step. */
  token(): Promise<string>
  stop(): Promise<void>
}

type Place = { folder: string; stores: { postgres: Store; redis: Store }; reaper: Reaper }

export const SUBJECT = 'SmartQueue'
export const BEFORE = 'before'

const HERE = fileURLToPath(new URL('.', import.meta.url))

/** This checkout, and an earlier one if a folder is given. */
export const startSmartQueues = async (place: Place, before?: string): Promise<Server[]> => {
  const subject = await startSmartQueue(place, { name: SUBJECT, root: '.', contender: smartqueue })
  if (!before) return [subject]
  const contender = await loadBefore(before)
  return [subject, await startSmartQueue(place, { name: BEFORE, root: before, contender })]
}

/** Those that are installed. */
export const startPeers = async (place: Place, say: (line: string) => void): Promise<Server[]> => {
  if (!(await isInstalled('fastify'))) {
    say('The peers are not installed, so SmartQueue runs alone. To compare: npm run bench:peers')
    return []
  }
  const contenders = [graphileDefault(), pgBoss()]
  if (isRedisInstalled()) contenders.push(bullmq())
  else say('BullMQ is skipped: there is no redis-server on the PATH.')
  return Promise.all(contenders.map((contender) => startPeer(place, contender)))
}

const startSmartQueue = async (
  { folder, stores, reaper }: Place,
  { name, root, contender }: { name: string; root: string; contender: Contender },
): Promise<Server> => {
  const databaseUrl = await stores.postgres.create()
  await contender.prepare(databaseUrl)
  const gateway = start('gateway-process.ts', [resolve(root), urlOf(databaseUrl, 'functions')])
  const { bindings } = (await answerOf(gateway)) as { bindings: Record<string, string> }
  const built = join(folder, `functions of ${name}`)
  await buildFunctions(built, root)
  const port = await freePort()
  const functions = serveFunctions({ port, folder: built, bindings })
  reaper.guard({ pid: functions.pid, signal: 'SIGTERM', graceMs: 2_000 })
  await untilReady(name, functions)
  const origin = `http://127.0.0.1:${port}`
  const { account } = await signUp(origin, 'driver')
  await withClient(databaseUrl, async (client) => {
    await client.query('set search_path = smartqueue, public')
    for (const statement of PREPARATIONS) await client.query(statement)
  })
  return {
    name,
    origin,
    databaseUrl,
    store: stores.postgres,
    pids: { functions: functions.pid, gateway: gateway.pid ?? 0 },
    isSmartQueue: true,
    token: keepToken(() => logIn(origin, account)),
    stop: async () => {
      await functions.stop()
      gateway.disconnect()
    },
  }
}

const untilReady = async (
  name: string,
  functions: ProcessGroup & { ready: Promise<void> },
): Promise<void> => {
  const ended = await Promise.race([functions.ready, functions.exited])
  if (ended) throw new Error(`The functions of ${name}: ${ended}`)
}

/** Quotas that are never reached, and a registered worker that claims nothing, so that jobs get an ETA. */
const PREPARATIONS = [
  `update quotas
   set submissions_per_minute = 1e12, queued_jobs = 1e12, payload_bytes_per_day = 1e15`,
  `insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb, last_seen)
   values ('bench', 'bench', 'online', '{${JOB_TYPE}}', 40, 1000, 1000000, now() + interval '1 day')`,
]

const startPeer = async ({ stores }: Place, contender: Contender): Promise<Server> => {
  const { name } = contender
  const store = stores[contender.store]
  const databaseUrl = await store.create()
  await contender.prepare(databaseUrl)
  const server = start('peer-server.ts', [name, databaseUrl])
  const { port, token } = (await answerOf(server)) as { port: number; token: string }
  return {
    name,
    origin: `http://127.0.0.1:${port}`,
    databaseUrl,
    store,
    pids: { functions: server.pid ?? 0 },
    isSmartQueue: false,
    token: async () => token,
    stop: async () => server.disconnect(),
  }
}

const start = (file: string, args: string[]): ChildProcess =>
  fork(join(HERE, file), args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })

const answerOf = async (child: ChildProcess): Promise<unknown> => {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${child.spawnargs[1]} exited with code ${code}`)
  })
  return Promise.race([once(child, 'message').then(([message]) => message), ended])
}
