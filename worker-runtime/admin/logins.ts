import { describeDrop } from '../../db/queries/logins.ts'
import { UsageError } from '../command.ts'
import { ensureLogin, newPassword, RUNTIMES, type Runtime, withLogin } from '../database-login.ts'
import type { AdminCommand } from './command.ts'

export const databaseLoginCommand: AdminCommand = {
  usage: 'database-login functions|workers [--login NAME]',
  about: 'make what the functions or the workers connect with, or give it a new password; printed once',
  run: async ({ name: runtime, options, client, url }) => {
    if (!isRuntime(runtime)) throw new UsageError('Name who it is for: functions or workers')
    const name = options.login ?? `${RUNTIMES[runtime]}_login`
    const login = { name, password: newPassword() }
    await ensureLogin(client, runtime, login)
    const databaseUrl = withLogin(url, login)
    return {
      text: `DATABASE_URL of the ${runtime}, shown only now:\n${databaseUrl}`,
      data: { login: name, database_url: databaseUrl },
    }
  },
}

export const dropLoginCommand: AdminCommand = {
  usage: 'drop-login NAME',
  about: 'take a login away that nothing uses any more',
  run: async ({ name, run, client }) => {
    if (!name) throw new UsageError('Name the login: NAME')
    const [drop] = await run(describeDrop(name))
    await client.query(drop?.statement ?? '')
    return { text: `${name} is gone.`, data: { login: name } }
  },
}

const isRuntime = (text: string | undefined): text is Runtime =>
  text !== undefined && Object.hasOwn(RUNTIMES, text)
