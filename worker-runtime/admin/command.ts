import type pg from 'pg'
import type { Run } from '../../db/query.ts'

/** What a command has to say: to people, and with `--json` to programs. */
export type Answer = { text: string; data: Record<string, unknown> }

export type AdminContext = {
  /** The first word after the command. */
  name: string | undefined
  /** The words after that. */
  more: readonly string[]
  options: {
    login?: string | undefined
    file?: string | undefined
    promote?: string | undefined
    retire?: boolean | undefined
    user?: boolean | undefined
  }
  url: string
  run: Run
  client: pg.Client
  /** Set if a password is to be read instead of made. */
  readPassword: (() => Promise<string>) | undefined
}

export type AdminCommand = {
  usage: string
  about: string
  /** False: it asks the database for nothing, and runs without one. */
  connects?: false
  run(context: AdminContext): Promise<Answer>
}
