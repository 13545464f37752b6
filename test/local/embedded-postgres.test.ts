import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { ensureLogin } from '../../worker-runtime/database-login.ts'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../worker-runtime/local/embedded-postgres.ts'
import { migrateDatabase, withClient } from '../../worker-runtime/migrate.ts'

// One data folder for the tests that do not care how it came about: initdb takes most of a second.
const shared = await temporaryFolder()
after(() => rm(shared, { recursive: true, force: true, maxRetries: 5 }))

test('data survives a stop and a start', async (t) => {
  const { start, folder } = await scratch(t, shared)
  const first = await start()
  await query(first.url, 'create table kept_by_stop as select 42 as answer')
  await Promise.all([first.stop(), first.stop()])
  await first.exited
  assert.equal(isAlive(first.pid), false)

  const second = await start()
  assert.equal(second.dataDir, first.dataDir)
  assert.deepEqual(await query(second.url, 'select answer from kept_by_stop'), [{ answer: 42 }])
  const [server] = await query(second.url, 'show server_version')
  assert.equal(server?.server_version, second.version)
  assert.deepEqual(await readdir(folder), ['data'], 'neither a password file nor a staging folder remains')
})

test('the owner of the database is not a superuser', async (t) => {
  const { start } = await scratch(t, shared)
  const { url } = await start()
  assert.deepEqual(
    await query(url, 'select rolsuper, rolbypassrls from pg_roles where rolname = current_user'),
    [{ rolsuper: false, rolbypassrls: false }],
  )
  await migrateDatabase(url)
  await withClient(url, async (client) => {
    await ensureLogin(client, 'functions', { name: 'smartqueue_new_functions', password: 'new' })
    await ensureLogin(client, 'workers', { name: 'smartqueue_new_workers', password: 'new' })
  })
  await query(url, `insert into smartqueue.orgs (id, name) values (gen_random_uuid(), 'writable')`)
  assert.equal((await query(url, 'select from smartqueue.queue_snapshot()')).length, 1)
})

test('it is durable unless told otherwise, and listens on loopback only', async (t) => {
  const { start } = await scratch(t, shared)
  const names = [
    'fsync',
    'synchronous_commit',
    'full_page_writes',
    'listen_addresses',
    'unix_socket_directories',
  ]
  const read = async (server: EmbeddedPostgres): Promise<unknown[]> => {
    const sql =
      'select setting from unnest($1::text[]) with ordinality as u(name, n) join pg_settings using (name) order by n'
    return (await query(server.superuserUrl, sql, [names])).map((row) => row.setting)
  }
  const durable = await start({ durable: true })
  assert.deepEqual(await read(durable), ['on', 'on', 'on', '127.0.0.1', ''])
  await durable.stop()
  const volatile = await start({ durable: false, settings: { work_mem: '5MB' } })
  assert.deepEqual(await read(volatile), ['off', 'off', 'off', '127.0.0.1', ''])
  assert.deepEqual(await query(volatile.url, 'show work_mem'), [{ work_mem: '5MB' }])
})

test('a server that was killed starts again with its data', async (t) => {
  const { start } = await scratch(t, shared)
  const first = await start({ durable: true })
  await query(first.url, 'create table kept_by_kill as select 42 as answer')
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  assert.ok(existsSync(join(first.dataDir, 'postmaster.pid')), 'the killed server leaves its file')
  await first.stop()

  const second = await start({ durable: true })
  assert.deepEqual(await query(second.url, 'select answer from kept_by_kill'), [{ answer: 42 }])
})

test('a start waits for the busy backends of a killed server', async (t) => {
  const { start } = await scratch(t, shared)
  const first = await start()
  const busy = new pg.Client({ connectionString: first.url, application_name: 'busy' })
  busy.on('error', () => {})
  await busy.connect()
  const [backend] = (await busy.query('select pg_backend_pid() as pid')).rows
  const answer = busy.query('select count(*) from generate_series(1, 5000000) a where a % 7 = 3')
  const ended = answer.catch(() => {})
  await until(async () => {
    const active = "select 1 from pg_stat_activity where application_name = 'busy' and state = 'active'"
    return (await query(first.url, active)).length === 1
  })
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  assert.ok(isAlive(backend.pid), 'the backend outlives its server')

  const second = await start()
  await ended
  assert.deepEqual(await query(second.url, 'select 1 as one'), [{ one: 1 }])
})

test('a stop ends a server that is just restarting after the crash of a backend', async (t) => {
  const { start } = await scratch(t, shared)
  for (let round = 0; round < 3; round++) {
    const server = await start({ patienceMs: 300 })
    const client = new pg.Client(server.url)
    client.on('error', () => {})
    await client.connect()
    const [backend] = (await client.query('select pg_backend_pid() as pid')).rows
    process.kill(backend.pid, 'SIGKILL')
    const refused = (error: { code?: string }): boolean => error.code === '57P03'
    await until(() => query(server.url, 'select 1').then(() => false, refused))
    await server.stop()
    assert.equal(isAlive(server.pid), false)
  }
  const next = await start()
  assert.deepEqual(await query(next.url, 'select 1 as one'), [{ one: 1 }])
})

test('a server left alive by a killed run goes on without its log, and is replaced', async (t) => {
  const { start, dataDir, startInChild } = await scratch(t, shared)
  const run = startInChild()
  const lines = createInterface({ input: run.stdout })
  const [line] = await Promise.race([once(lines, 'line'), once(lines, 'close')])
  const left: Pick<EmbeddedPostgres, 'url' | 'pid'> = JSON.parse(line)
  assert.ok(isAlive(-left.pid), 'it has a process group of its own: Ctrl-C does not reach it')
  run.kill('SIGKILL')
  await once(run, 'exit')

  await query(left.url, 'create table kept_by_orphan as select 42 as answer')
  await assert.rejects(query(left.url, 'select logged_to_a_broken_pipe'), { code: '42703' })
  assert.equal((await query(left.url, 'select 1 from kept_by_orphan')).length, 1)

  const next = await start()
  await assert.rejects(query(left.url, 'select 1'), { code: 'ECONNREFUSED' })
  assert.equal(next.dataDir, dataDir)
  assert.deepEqual(await query(next.url, 'select answer from kept_by_orphan'), [{ answer: 42 }])
})

test('a server forgotten by this process is replaced', async (t) => {
  const { start } = await scratch(t, shared)
  const forgotten = await start()
  const next = await start()
  await forgotten.exited
  assert.deepEqual(await query(next.url, 'select 1 as one'), [{ one: 1 }])
})

test('a stranger whose pid stands in postmaster.pid is left alone', async (t) => {
  const { start } = await scratch(t, shared)
  const first = await start()
  const pidFile = await readFile(join(first.dataDir, 'postmaster.pid'), 'utf8')
  await first.stop()
  const { uid, gid } = await stat(first.dataDir)
  // Of the same account: Postgres takes a process that it may not signal for a dead one.
  const stranger = spawn('sleep', ['60'], { uid, gid, stdio: 'ignore' })
  t.after(() => stranger.kill('SIGKILL'))
  await once(stranger, 'spawn')
  await writeFile(join(first.dataDir, 'postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)))

  const second = await start()
  assert.deepEqual(await query(second.url, 'select 1 as one'), [{ one: 1 }])
  assert.deepEqual([stranger.exitCode, stranger.signalCode], [null, null])
})

test('the server of another data folder is left alone too', async (t) => {
  const [mine, other] = [await scratch(t, shared), await scratch(t)]
  const [first, neighbour] = [await mine.start(), await other.start()]
  const pidFile = await readFile(join(first.dataDir, 'postmaster.pid'), 'utf8')
  await first.stop()
  await writeFile(join(first.dataDir, 'postmaster.pid'), pidFile.replace(/^\d+/, String(neighbour.pid)))

  const second = await mine.start()
  assert.deepEqual(await query(second.url, 'select 1 as one'), [{ one: 1 }])
  assert.deepEqual(await query(neighbour.url, 'select 1 as one'), [{ one: 1 }])
})

test('an interrupted initdb leaves nothing that the next start trips over', async (t) => {
  const { start, folder, dataDir, startInChild } = await scratch(t)
  const run = startInChild()
  const staging = await until(async () =>
    (await readdir(folder)).find((name) => name.startsWith('data.initdb-')),
  )
  await until(async () => existsSync(join(folder, staging, 'data', 'PG_VERSION')))
  run.kill('SIGKILL')
  await once(run, 'exit')
  assert.equal(existsSync(dataDir), false, 'the data folder appears only when it is complete')

  const server = await start()
  assert.deepEqual(await query(server.url, 'select 1 as one'), [{ one: 1 }])
  assert.deepEqual(await readdir(folder), ['data'])
})

test('a server that cannot start says why, with its last log lines', async (t) => {
  const { start, folder } = await scratch(t)
  await assert.rejects(start({ settings: { shared_buffers: 'nonsense' } }), /shared_buffers/)
  const taken = createServer().listen(0, '127.0.0.1')
  t.after(() => taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  await assert.rejects(start({ port }), /Address already in use/)
  await assert.rejects(start({ dataDir: folder }), /is not empty and holds no Postgres data/)
})

test('a wrong password leaves no server behind', async (t) => {
  const { start, dataDir } = await scratch(t, shared)
  await (await start()).stop()
  await assert.rejects(start({ password: 'wrong' }), { code: '28P01' })
  assert.equal(existsSync(join(dataDir, 'postmaster.pid')), false)
})

test('as root, data below a private folder moves to where the server can read it', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('a normal user runs Postgres under its own account')
  const { start, folder } = await scratch(t)
  await chmod(folder, 0o700)
  const first = await start()
  t.after(() => rm(first.dataDir, { recursive: true, force: true }))
  assert.notEqual(dirname(first.dataDir), folder)
  await query(first.url, 'create table kept_by_move as select 42 as answer')
  await first.stop()
  const second = await start()
  assert.deepEqual(await query(second.url, 'select answer from kept_by_move'), [{ answer: 42 }])
  await second.stop()
})

test('a platform without binaries is told what to do', async (t) => {
  const arch = Object.getOwnPropertyDescriptor(process, 'arch')
  t.after(() => arch && Object.defineProperty(process, 'arch', arch))
  Object.defineProperty(process, 'arch', { ...arch, value: 'vax' })
  const message = /-vax is not installed: run npm ci without --omit=optional, or set DATABASE_URL\.$/
  await assert.rejects(
    startEmbeddedPostgres({ dataDir: join(tmpdir(), 'unused'), password: 'secret' }),
    message,
  )
})

type Scratch = {
  readonly folder: string
  readonly dataDir: string
  readonly start: (options?: Partial<EmbeddedPostgresOptions>) => Promise<EmbeddedPostgres>
  /** Starts it in a process of its own, which prints the server as a line of JSON. */
  readonly startInChild: () => ChildProcessByStdio<null, Readable, null>
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-test-'))
  await chmod(folder, 0o755) // as root the server runs under another account, which must get in
  return folder
}

const scratch = async (t: TestContext, sharedFolder?: string): Promise<Scratch> => {
  const folder = sharedFolder ?? (await temporaryFolder())
  const defaults = { dataDir: join(folder, 'data'), password: 'secret', durable: false }
  const servers: EmbeddedPostgres[] = []
  t.after(async () => {
    for (const server of servers) await server.stop()
    if (folder !== sharedFolder) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const start: Scratch['start'] = async (options = {}) => {
    const server = await startEmbeddedPostgres({ ...defaults, ...options })
    servers.push(server)
    return server
  }
  const startInChild: Scratch['startInChild'] = () => {
    const module = new URL('../../worker-runtime/local/embedded-postgres.ts', import.meta.url)
    const script = `import { startEmbeddedPostgres } from ${JSON.stringify(module)}
      console.log(JSON.stringify(await startEmbeddedPostgres(${JSON.stringify(defaults)})))`
    const args = ['--input-type=module', '--eval', script]
    return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  }
  return { folder, dataDir: defaults.dataDir, start, startInChild }
}

const query = async (
  url: string,
  sql: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql, values)).rows
  } finally {
    await client.end()
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const until = async <T>(read: () => Promise<T | undefined | false>): Promise<T> => {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await delay(5)) {
    const value = await read()
    if (value) return value
  }
  throw new Error('the condition did not come true within 10 s')
}
