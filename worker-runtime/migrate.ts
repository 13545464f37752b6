import { parseArgs } from 'node:util'
import pg from 'pg'
import { type MigrationReport, migrate } from '../db/migrator.ts'
import { runCommand } from './command.ts'
import { ConfigError, parseConfig } from './config.ts'

const HELP = `Usage: npm run migrate [-- --json]

Brings the schema smartqueue of DATABASE_URL to the newest version. Safe to run twice, and twice at the same time.

  --json   print {"version", "applied", "loaded"} and nothing else
  --help   print this`

export const migrateDatabase = (url: string): Promise<MigrationReport> => withClient(url, migrate)

/** Connects, works, disconnects. */
export const withClient = async <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  // The query that is under way reports the loss of the connection; unheard, this event would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const { DATABASE_URL: url } = parseConfig(process.env)
  if (!url) throw new ConfigError('DATABASE_URL: name the Postgres to migrate')
  const report = await migrateDatabase(url)
  if (values.json) console.log(JSON.stringify(report))
  else {
    for (const name of report.applied) console.log(`applied ${name}`)
    console.log(`The schema is at version ${report.version}; loaded ${report.loaded.length} function files.`)
  }
  return 0
}

if (import.meta.main) runCommand('DATABASE_URL could not be migrated', main)
