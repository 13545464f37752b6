import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../worker-runtime/local/embedded-postgres.ts'
import { startReaper } from '../../worker-runtime/local/reaper-link.ts'
import { migrateDatabase } from '../../worker-runtime/migrate.ts'
import {
  createLogins,
  createTestDatabase,
  TEMPLATE_DATABASE,
  type TestDatabase,
} from '../support/database.ts'
import { createTestFolder } from '../support/folder.ts'

/** A server of its own, with fsync on. */
export const withOwnPostgres = async <T>(
  work: (database: TestDatabase) => Promise<T>,
  settings: Record<string, string> = {},
): Promise<T> => {
  const folder = await createTestFolder()
  const reaper = startReaper(() => {})
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'bench',
    database: TEMPLATE_DATABASE,
    settings,
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 10_000 }),
  })
  try {
    await migrateDatabase(postgres.url)
    await createLogins(postgres.superuserUrl)
    process.env.TEST_POSTGRES_URL = postgres.superuserUrl
    const database = await createTestDatabase()
    const answer = await work(database)
    await database.drop()
    return answer
  } finally {
    await postgres.stop()
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}
