import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { describeDatabase, describeLogin } from '../../db/queries/logins.ts'
import { followDescription, newPassword } from '../database-login.ts'
import { withClient } from '../migrate.ts'
import { freePort } from './ports.ts'
import { openPostgresBinaries, type PostgresBinaries, type PostgresProcess } from './postgres-binaries.ts'
import { prepareDataDir, SUPERUSER } from './postgres-data-dir.ts'

export type EmbeddedPostgres = {
  /** Connects as the owner of the database, which is not a superuser. */
  readonly url: string
  /** For actions that require a superuser. SmartQueue itself needs none of them. */
  readonly superuserUrl: string
  readonly version: string
  /** Where the data really is: below the temp folder if the account of the server cannot reach the wanted place. */
  readonly dataDir: string
  readonly pid: number
  /** Resolves when the server process ends, for whatever reason. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

export type EmbeddedPostgresOptions = {
  readonly dataDir: string
  readonly password: string
  readonly database?: string
  /** False trades safety against power loss for speed: tests only. */
  readonly durable?: boolean
  /** A free one unless given. */
  readonly port?: number
  readonly settings?: Readonly<Record<string, string>>
  /** How long a stop may take in good order. After that the server is cut short, and the next start recovers. */
  readonly patienceMs?: number
  /** Told the pid as soon as there is one, long before the server is ready. */
  readonly onSpawn?: (pid: number) => void
}

/** Starts a real Postgres from the npm package; two runs with one data folder find the same data. */
export const startEmbeddedPostgres = async (options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const { database = 'smartqueue', durable = true, password } = options
  const binaries = await openPostgresBinaries()
  const dataDir = await prepareDataDir(binaries, { dataDir: options.dataDir, password, durable })
  const { server, port } = await boot(binaries, dataDir, options)
  const superuser = { name: SUPERUSER, password }
  const owner = { name: OWNER, password: newPassword() }
  const urlOf = (role: Role, name: string): string =>
    `postgres://${role.name}:${encodeURIComponent(role.password)}@127.0.0.1:${port}/${encodeURIComponent(name)}`
  try {
    await prepareDatabase((name) => urlOf(superuser, name), database, owner)
  } catch (error) {
    await server.stop()
    throw error
  }
  const { version } = binaries
  return {
    ...server,
    url: urlOf(owner, database),
    superuserUrl: urlOf(superuser, database),
    version,
    dataDir,
  }
}

type Role = { readonly name: string; readonly password: string }

/** Owns the database and its tables. The superuser is used only to set it up. */
const OWNER = 'smartqueue_owner'

const prepareDatabase = async (
  urlOf: (database: string) => string,
  database: string,
  owner: Role,
): Promise<void> =>
  withClient(urlOf('postgres'), async (client) => {
    await followDescription(client, describeLogin({ ...owner, group: null }))
    await followDescription(client, describeDatabase(database, owner.name))
  })

type Server = Pick<EmbeddedPostgres, 'pid' | 'exited' | 'stop'>
type Launch = { kind: 'ready'; server: Server } | { kind: 'failed'; log: string }

const PORT_RETRIES = 3
// The backends of a killed server end when they next wait for something; one in a long computation ends later.
const ORPHAN_WAIT_MS = 15_000

const boot = async (
  binaries: PostgresBinaries,
  dataDir: string,
  options: EmbeddedPostgresOptions,
): Promise<{ server: Server; port: number }> => {
  const orphanDeadline = Date.now() + ORPHAN_WAIT_MS
  for (let portRetries = 0; ; ) {
    const port = options.port ?? (await freePort())
    const result = await launch(binaries, dataDir, serverArgs(dataDir, port, options), options)
    if (result.kind === 'ready') return { server: result.server, port }
    const portLost = options.port === undefined && result.log.includes('could not bind IPv4 address')
    const orphansLeft = result.log.includes('pre-existing shared memory block')
    if (portLost && portRetries < PORT_RETRIES) portRetries++
    else if (orphansLeft && Date.now() < orphanDeadline) await delay(100)
    else throw new Error(`Postgres does not start on ${dataDir}:\n${result.log}`)
  }
}

const serverArgs = (dataDir: string, port: number, options: EmbeddedPostgresOptions): string[] => {
  const volatile = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const settings = {
    max_connections: '200',
    ...(options.durable === false && volatile),
    ...options.settings,
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
  }
  return ['-D', dataDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}

// Without a deadline: Postgres gets ready or exits, and recovery after a crash takes as long as it takes.
const launch = async (
  binaries: PostgresBinaries,
  dataDir: string,
  args: string[],
  { onSpawn, patienceMs = PATIENCE_MS }: EmbeddedPostgresOptions,
): Promise<Launch> => {
  const child = binaries.startDetached('postgres', args)
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const log = followLog(child)
  await once(child, 'spawn')
  if (child.pid !== undefined) onSpawn?.(child.pid)
  const ready = await Promise.race([log.ready.then(() => true), closed.then(() => false)])
  if (!ready || child.pid === undefined) return { kind: 'failed', log: log.tail() }
  const shutDown = async (): Promise<void> => {
    for (const mode of ['fast', 'immediate'] as const) {
      if (child.exitCode !== null || child.signalCode !== null) return
      await requestStop(binaries, dataDir, child, mode)
      await Promise.race([exited, delay(patienceMs, undefined, { ref: false })])
    }
    child.kill('SIGKILL')
    await exited
  }
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= shutDown()
    return stopping
  }
  return { kind: 'ready', server: { pid: child.pid, exited, stop } }
}

const LOG_LINES = 30
const LOG_LINE_CHARS = 400

// Both pipes are read for the whole life of the server: a full pipe would block it.
const followLog = (child: PostgresProcess): { ready: Promise<void>; tail: () => string } => {
  const lines: string[] = []
  const ready = Promise.withResolvers<void>()
  const keep = (line: string): void => {
    lines.push(line.slice(0, LOG_LINE_CHARS))
    if (lines.length > LOG_LINES) lines.shift()
    if (line.includes('database system is ready to accept connections')) ready.resolve()
  }
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', keep)
  return { ready: ready.promise, tail: () => lines.join('\n') }
}

const PATIENCE_MS = 30_000

const STOP_SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/**
 * Fast: clients are cut off, transactions rolled back, a checkpoint written. Immediate: none of that, as if the power
 * had failed. Postgres 18 needs it: a fast stop that comes while it restarts after the crash of a backend never ends.
 */
const requestStop = async (
  binaries: PostgresBinaries,
  dataDir: string,
  child: PostgresProcess,
  mode: keyof typeof STOP_SIGNALS,
): Promise<void> => {
  if (process.platform === 'win32') await binaries.run('pg_ctl', ['stop', '-W', '-D', dataDir, '-m', mode])
  else child.kill(STOP_SIGNALS[mode])
}
