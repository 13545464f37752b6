import { text as readAll } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import pg from 'pg'
import type { Query } from '../../db/query.ts'
import { runCommand, UsageError } from '../command.ts'
import { type Config, parseConfig } from '../config.ts'
import { describeError } from '../describe-error.ts'
import { readDatabaseUrl } from '../local/home.ts'
import { withClient } from '../migrate.ts'
import { createCommand, grantCommand, listCommand, passwordCommand, revokeCommand } from './accounts.ts'
import type { AdminCommand, AdminContext, Answer } from './command.ts'
import { databaseLoginCommand, dropLoginCommand } from './logins.ts'
import { quotasCommand } from './quotas.ts'
import { signingKeyCommand } from './signing-keys.ts'

const COMMANDS: Record<string, AdminCommand> = {
  create: createCommand,
  grant: grantCommand,
  revoke: revokeCommand,
  list: listCommand,
  password: passwordCommand,
  'database-login': databaseLoginCommand,
  'drop-login': dropLoginCommand,
  'signing-key': signingKeyCommand,
  quotas: quotasCommand,
}

const HELP = `Usage: npm run admin -- COMMAND … [--json]

${Object.values(COMMANDS)
  .map(({ usage, about }) => `  ${usage}\n      ${about}`)
  .join('\n')}

  --json   print one object and nothing else
  --help   print this

It works on DATABASE_URL, as the role that owns the database; without it, on the running \`npm run dev\`.`

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      login: { type: 'string' },
      file: { type: 'string' },
      promote: { type: 'string' },
      retire: { type: 'boolean' },
      user: { type: 'boolean' },
      'password-stdin': { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const [command, name, ...more] = positionals
  if (values.help || command === undefined) {
    console.log(HELP)
    return values.help ? 0 : 1
  }
  const chosen = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
  if (!chosen)
    throw new UsageError(`There is no command "${command}". There are: ${Object.keys(COMMANDS).join(', ')}.`)
  const readPassword = values['password-stdin']
    ? async () => (await readAll(process.stdin)).replace(/\r?\n$/, '')
    : undefined
  const answer = await runWith(chosen, { name, more, options: values, readPassword })
  console.log(values.json ? JSON.stringify(answer.data) : answer.text)
  return 0
}

const runWith = async (
  command: AdminCommand,
  context: Pick<AdminContext, 'name' | 'more' | 'options' | 'readPassword'>,
): Promise<Answer> => {
  const unreachable = (): never => {
    throw new Error('This command has no database')
  }
  if (command.connects === false) {
    return command.run({ ...context, url: '', run: unreachable, client: undefined as unknown as pg.Client })
  }
  const url = findDatabaseUrl(parseConfig(process.env))
  return withClient(url, (client) =>
    command.run({
      ...context,
      url,
      client,
      run: async <Row>({ text, values }: Query<Row>) => (await client.query(text, [...values])).rows as Row[],
    }),
  ).catch((error: unknown) => {
    if (error instanceof pg.DatabaseError || error instanceof UsageError) throw error
    throw new UsageError(`The database cannot be reached (${describeError(error)}). Is npm run dev running?`)
  })
}

const findDatabaseUrl = (config: Config): string => {
  const url = config.DATABASE_URL ?? readDatabaseUrl(config.SMARTQUEUE_HOME)
  if (url) return url
  throw new UsageError('Start npm run dev first, or set DATABASE_URL to the database to administer.')
}

runCommand('The command failed', main)
