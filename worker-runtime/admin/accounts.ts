import { createAccount, listAdmins, resetPassword, setAdmin } from '../../db/queries/admins.ts'
import type { Run } from '../../db/query.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { passwordFault } from '../../functions/auth/password-rules.ts'
import { hashPassword } from '../../functions/auth/passwords.ts'
import { UsageError } from '../command.ts'
import { newPassword } from '../database-login.ts'
import type { AdminCommand, Answer } from './command.ts'

export const createCommand: AdminCommand = {
  usage: 'create USERNAME [--user] [--password-stdin]',
  about:
    'create an admin account or, with --user, an ordinary one; its password is printed once, or read from stdin',
  run: async ({ name, run, options, readPassword }) => {
    const username = need(name)
    if (!/^[A-Za-z0-9][A-Za-z0-9._@+-]{2,63}$/.test(username)) {
      throw new UsageError('USERNAME: 3 to 64 letters, digits and . _ @ + -, the first a letter or digit')
    }
    const isAdmin = options.user !== true
    const password = await choosePassword(username, readPassword)
    const ids = { userId: uuidV7(), orgId: uuidV7() }
    const passwordHash = await hashPassword(password.text)
    const [account] = await run(createAccount({ ...ids, username, passwordHash, isAdmin }))
    if (!account?.created) {
      throw new UsageError(
        `"${username}" is taken. To make that account an admin: npm run admin -- grant ${username}`,
      )
    }
    const what = isAdmin ? `${username} is an admin.` : `${username} has an account.`
    return tell(what, { username, user_id: ids.userId }, password)
  },
}

export const grantCommand: AdminCommand = {
  usage: 'grant USERNAME',
  about: 'make an existing account an admin, from its next request on',
  run: ({ name, run }) => change(run, need(name), true),
}

export const revokeCommand: AdminCommand = {
  usage: 'revoke USERNAME',
  about: 'take that away, at once',
  run: ({ name, run }) => change(run, need(name), false),
}

export const listCommand: AdminCommand = {
  usage: 'list',
  about: 'name all admins',
  run: async ({ run }) => {
    const admins = await run(listAdmins())
    const text = admins.map(({ username, created_at }) => `${username}  since ${created_at}`)
    return {
      text: text.join('\n') || 'There is no admin yet: npm run admin -- create USERNAME',
      data: { admins },
    }
  },
}

export const passwordCommand: AdminCommand = {
  usage: 'password USERNAME [--password-stdin]',
  about: 'give any account a new password, printed once, and end all its sign-ins',
  run: async ({ name, run, readPassword }) => {
    const username = need(name)
    const password = await choosePassword(username, readPassword)
    const [changed] = await run(resetPassword(username, await hashPassword(password.text)))
    if (!changed) throw nobody(username)
    return tell(`${username} has a new password.`, { username, user_id: changed.user_id }, password)
  },
}

const change = async (run: Run, username: string, isAdmin: boolean): Promise<Answer> => {
  const [changed] = await run(setAdmin(username, isAdmin))
  if (!changed) throw nobody(username)
  const text = isAdmin
    ? `${username} is an admin. Access tokens say so after the next sign-in or refresh.`
    : `${username} is no admin any more.`
  return { text, data: { username, user_id: changed.user_id, is_admin: isAdmin } }
}

type Password = { text: string; made: boolean }

const choosePassword = async (
  username: string,
  readPassword: (() => Promise<string>) | undefined,
): Promise<Password> => {
  if (!readPassword) return { text: newPassword(), made: true }
  const text = await readPassword()
  const fault = passwordFault(text, username)
  if (fault !== undefined) throw new UsageError(`The password ${fault}.`)
  return { text, made: false }
}

const tell = (what: string, data: Record<string, unknown>, { text, made }: Password): Answer =>
  made
    ? { text: `${what}\nPassword, shown only now: ${text}`, data: { ...data, password: text } }
    : { text: what, data }

const need = (name: string | undefined): string => {
  if (!name) throw new UsageError('Name the account: USERNAME')
  return name
}

const nobody = (username: string): UsageError => new UsageError(`Nobody has the name "${username}".`)
