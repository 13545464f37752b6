import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../../worker-runtime/local/embedded-postgres.ts'
import type { Reaper } from '../../../worker-runtime/local/reaper-link.ts'
import { withClient } from '../../../worker-runtime/migrate.ts'
import type { Store } from './contender.ts'
import { treeCpuMs } from './process-cpu.ts'

/**
 * The same for everyone: fsync and synchronous_commit are on, as they are by default. The rest is what any
 * tuning guide sets first, so that neither the buffer cache nor a checkpoint in the middle is what is measured.
 */
const SETTINGS = {
  shared_buffers: '512MB',
  min_wal_size: '2GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
}

const UNUSED_MS = 5_000
const SESSIONS = `select 1 from pg_stat_activity where datname = $1 and backend_type = 'client backend'`

export const startPostgresStore = async (folder: string, reaper: Reaper): Promise<Store> => {
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'bench',
    durable: true,
    settings: SETTINGS,
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 10_000 }),
  })
  const run = (url: string, text: string, values: unknown[] = []) =>
    withClient(url, (client) => client.query(text, values))
  const urlOf = (name: string): string =>
    Object.assign(new URL(postgres.superuserUrl), { pathname: `/${name}` }).href
  const nameOf = (url: string): string => new URL(url).pathname.slice(1)
  let created = 0

  const create = async (template: string): Promise<string> => {
    const name = `bench_${++created}`
    // file_copy: the default strategy writes a copied database through the log, page by page.
    await run(postgres.superuserUrl, `create database ${name} template ${template} strategy file_copy`)
    // A copy has the default rights again, with which SmartQueue's runtimes refuse to start.
    await run(postgres.superuserUrl, `revoke temporary on database ${name} from public`)
    return urlOf(name)
  }

  /** Libraries say that they have closed before the server has: cut off then, they would throw in nobody's hands. */
  const untilUnused = async (url: string): Promise<void> => {
    const deadline = performance.now() + UNUSED_MS
    while (performance.now() < deadline) {
      const { rows } = await run(postgres.superuserUrl, SESSIONS, [nameOf(url)])
      if (rows.length === 0) return
      await delay(10)
    }
  }

  return {
    create: () => create('template0'),
    copy: async (url) => {
      await untilUnused(url)
      return create(pg.escapeIdentifier(nameOf(url)))
    },
    drop: async (url) => {
      await untilUnused(url)
      await run(
        postgres.superuserUrl,
        `drop database if exists ${pg.escapeIdentifier(nameOf(url))} with (force)`,
      )
    },
    settle: async (url) => {
      await run(url, 'vacuum (analyze)')
      await run(url, 'checkpoint')
      // A new database leaves hundreds of files to write, at a time of the system's choosing.
      await promisify(execFile)('sync')
    },
    usage: async () => {
      const { rows } = await run(postgres.superuserUrl, `select pg_current_wal_lsn() - '0/0' as bytes`)
      return { cpuMs: treeCpuMs(postgres.pid), walBytes: Number(rows[0]?.bytes) }
    },
    stop: postgres.stop,
  }
}
