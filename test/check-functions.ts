import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { migrate } from '../db/migrator.ts'
import { runCommand } from '../worker-runtime/command.ts'
import { startEmbeddedPostgres } from '../worker-runtime/local/embedded-postgres.ts'
import { startReaper } from '../worker-runtime/local/reaper-link.ts'
import { withClient } from '../worker-runtime/migrate.ts'
import { createTestFolder } from './support/folder.ts'

/** Compiles every SQL function in a scratch database. An error names its file and line. */
const main = async (): Promise<number> => {
  const folder = await createTestFolder()
  // Whatever ends this process, its Postgres ends too.
  const reaper = startReaper(() => {})
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'test',
    durable: false,
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 5_000 }),
  })
  try {
    const { loaded } = await withClient(postgres.url, async (client) => {
      await client.query(`set plpgsql.extra_errors = 'all'`)
      return migrate(client)
    })
    console.log(`Compiled the functions of ${loaded.length} SQL files.`)
    return 0
  } finally {
    await postgres.stop()
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}

runCommand('The SQL functions do not compile', main)
