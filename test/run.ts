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
import { startReaper } from '../worker-runtime/local/reaper-link.ts'
import { migrateDatabase } from '../worker-runtime/migrate.ts'
import { bundleForTests } from './support/bundle.ts'
import { createLogins, TEMPLATE_DATABASE } from './support/database.ts'
import { createTestFolder } from './support/folder.ts'
import { startWorkerdHost } from './support/workerd-host.ts'

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
  const files = positionals.length > 0 ? positionals : ownTests()
  const flags = [
    `--test-concurrency=${availableParallelism() + 1}`,
    '--test-timeout=240000',
    '--test-reporter=spec',
  ]
  if (values.name) flags.push(`--test-name-pattern=${values.name}`)
  const folder = await createTestFolder()
  const bundle = join(folder, 'bundle')
  // While Postgres starts.
  const bundled = bundleForTests(bundle)
  bundled.catch(() => {})
  // Whatever ends this process, its Postgres ends too.
  const reaper = startReaper(() => {})
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    password: 'test',
    database: TEMPLATE_DATABASE,
    durable: false,
    // It would go round all databases of tests that are over.
    settings: { autovacuum_naptime: '10min' },
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 5_000 }),
  })
  try {
    await migrateDatabase(postgres.url)
    await createLogins(postgres.superuserUrl)
    const wrangler = offlineWrangler(join(folder, 'wrangler'))
    Object.assign(process.env, wrangler)
    await bundled
    const host = await startWorkerdHost(bundle)
    const env = {
      ...wrangler,
      TEST_POSTGRES_URL: postgres.superuserUrl,
      TEST_WORKERD_HOST: host.url,
      TEST_WORKER_FOLDER: bundle,
    }
    const code = await runTests(['--test', ...flags, ...files], env)
    await host.stop()
    return code
  } finally {
    await postgres.stop()
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Not those of packages that the benchmark has installed. */
const ownTests = (): string[] =>
  globSync('test/**/*.test.ts')
    .filter((file) => !file.includes('node_modules'))
    .sort((a, b) => Number(isLong(b)) - Number(isLong(a)) || a.localeCompare(b))

/** Those that start whole systems, or wait for leases to run out, go first: nothing would run beside them at the end. */
const isLong = (file: string): boolean =>
  /test\/(local|demo|dashboard)\/|worker-(failure|pauses|status)\.test/.test(file)

const runTests = async (args: string[], env: Record<string, string>): Promise<number> => {
  const child = spawn(process.execPath, args, { stdio: 'inherit', env: { ...process.env, ...env } })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  return code ?? 1
}

runCommand('The tests could not start', main)
