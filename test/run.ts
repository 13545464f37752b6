import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runCommand } from '../worker-runtime/command.ts'
import { startEmbeddedPostgres } from '../worker-runtime/local/embedded-postgres.ts'
import { offlineWrangler } from '../worker-runtime/local/functions-server.ts'
import { migrateDatabase } from '../worker-runtime/migrate.ts'
import { TEMPLATE_DATABASE } from './support/database.ts'
import { createTestFolder } from './support/folder.ts'

const HELP = `Usage: npm test [-- FILE…] [-- --name PATTERN]

Runs the tests against one real Postgres, each file in a database of its own.`

/** One Postgres for the whole run and a migrated template; the test files then run in parallel. */
const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { name: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const folder = await createTestFolder()
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'test',
    database: TEMPLATE_DATABASE,
    durable: false,
  })
  try {
    await migrateDatabase(postgres.url)
    const files = positionals.length > 0 ? positionals : globSync('test/**/*.test.ts').sort()
    const flags = [
      '--test',
      `--test-concurrency=${availableParallelism() + 1}`,
      '--test-timeout=120000',
      '--test-reporter=spec',
    ]
    if (values.name) flags.push(`--test-name-pattern=${values.name}`)
    const child = spawn(process.execPath, [...flags, ...files], {
      stdio: 'inherit',
      env: { ...process.env, ...offlineWrangler(join(folder, 'wrangler')), TEST_POSTGRES_URL: postgres.url },
    })
    const [code] = await once(child, 'exit')
    return code ?? 1
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

runCommand('The tests could not start', main)
