import { join } from 'node:path'
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
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '8GB', checkpoint_timeout: '30min' }

export const startPostgresStore = async (folder: string, reaper: Reaper): Promise<Store> => {
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'bench',
    durable: true,
    settings: SETTINGS,
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 10_000 }),
  })
  const run = (url: string, text: string) => withClient(url, (client) => client.query(text))
  const urlOf = (name: string): string => Object.assign(new URL(postgres.url), { pathname: `/${name}` }).href
  const nameOf = (url: string): string => new URL(url).pathname.slice(1)
  let created = 0

  const create = async (template: string): Promise<string> => {
    const name = `bench_${++created}`
    // file_copy: the default strategy writes a copied database through the log, page by page.
    await run(postgres.url, `create database ${name} template ${template} strategy file_copy`)
    return urlOf(name)
  }

  return {
    create: () => create('template0'),
    copy: (url) => create(pg.escapeIdentifier(nameOf(url))),
    drop: async (url) => {
      await run(postgres.url, `drop database if exists ${pg.escapeIdentifier(nameOf(url))} with (force)`)
    },
    settle: async (url) => {
      await run(url, 'vacuum (analyze)')
      await run(url, 'checkpoint')
    },
    usage: async () => {
      const { rows } = await run(postgres.url, `select pg_current_wal_lsn() - '0/0' as bytes`)
      return { cpuMs: treeCpuMs(postgres.pid), walBytes: Number(rows[0]?.bytes) }
    },
    stop: postgres.stop,
  }
}
