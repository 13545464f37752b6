import { parseArgs } from 'node:util'
import pg from 'pg'
import { type Migration, type MigrationReport, migrate } from '../db/migrator.ts'
import { ConfigError, parseConfig } from './config.ts'
import { describeError } from './describe-error.ts'

const HELP = `Usage: npm run migrate [-- --json]

Brings the schema of DATABASE_URL to the newest version. Safe to run twice, and twice at the same time.

  --json   print {"version", "applied"} and nothing else
  --help   print this`

/** Connects, migrates, disconnects. */
export const migrateDatabase = async (
  url: string,
  onApplied?: (migration: Migration) => void,
): Promise<MigrationReport> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  // The query that is under way reports the loss of the connection; unheard, this event would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await migrate(client, onApplied)
  } finally {
    await client.end().catch(() => {})
  }
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) return void console.log(HELP)
  const { DATABASE_URL: url } = parseConfig(process.env)
  if (!url) throw new ConfigError('DATABASE_URL: name the Postgres to migrate')
  const report = await migrateDatabase(url, (migration) => {
    if (!values.json) console.log(`applied ${migration.name}`)
  })
  console.log(values.json ? JSON.stringify(report) : `The schema is at version ${report.version}.`)
}

if (import.meta.main) {
  main().catch((error: Error) => {
    console.error(describeError(error))
    process.exit(1)
  })
}
