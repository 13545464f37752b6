/**
 * The data folder. It appears under its name by a rename, complete: a kill during initdb leaves a staging
 * folder that the next run removes, never a half folder that it would take for data.
 */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Account, ownTempFolder, type PostgresBinaries, shortHash } from './postgres-binaries.ts'

/** The name that earlier releases used, whose data folders it must open. */
export const SUPERUSER = 'smartqueue'

type DataDirOptions = { readonly dataDir: string; readonly password: string; readonly durable: boolean }

/** Returns where the data really is, with no other server on it. */
export const prepareDataDir = async (
  binaries: PostgresBinaries,
  options: DataDirOptions,
): Promise<string> => {
  const dataDir = placeDataDir(resolve(options.dataDir), binaries.account, options.password)
  removeAbandonedStaging(dataDir)
  if (existsSync(join(dataDir, 'PG_VERSION'))) await stopLeftover(binaries, dataDir)
  else await initialise(binaries, { ...options, dataDir })
  return dataDir
}

// The path is made canonical: it is compared with the command line of a server that was left behind.
const placeDataDir = (wanted: string, account: Account | undefined, password: string): string => {
  const parent = dirname(wanted)
  const created = mkdirSync(parent, { recursive: true })
  if (created !== undefined && account) chmodSync(parent, 0o755)
  const place = existsSync(wanted) ? realpathSync(wanted) : join(realpathSync(parent), basename(wanted))
  if (!account || isWithinReach(dirname(place), account)) return place
  // The password is part of the name: whoever removes the folder with the password gets new data, not a locked door.
  return join(persistentFolder(), `data-${shortHash(`${place} ${password}`)}`)
}

// Only root comes here, who may write to /var/lib. The temp folder, which a restart may empty, is the last resort.
const persistentFolder = (): string => {
  try {
    mkdirSync(PERSISTENT, { recursive: true, mode: 0o755 })
    return PERSISTENT
  } catch {
    return realpathSync(ownTempFolder())
  }
}

const PERSISTENT = '/var/lib/smartqueue'

const isWithinReach = (folder: string, account: Account): boolean => {
  const { mode, uid } = statSync(folder)
  const enters = uid === account.uid ? mode & 0o100 : mode & 0o001
  const parent = dirname(folder)
  return enters !== 0 && (parent === folder || isWithinReach(parent, account))
}

const stagingPrefix = (dataDir: string): string => `${basename(dataDir)}.initdb-`

const removeAbandonedStaging = (dataDir: string): void => {
  const parent = dirname(dataDir)
  const prefix = stagingPrefix(dataDir)
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(prefix))) {
    if (isAlive(Number(name.slice(prefix.length)))) continue
    // An orphaned initdb may still write: it stops when its folder is gone.
    rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 10 })
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

// The password file lies in the staging folder too: it goes with it, whoever removes it.
const initialise = async (binaries: PostgresBinaries, options: DataDirOptions): Promise<void> => {
  const { dataDir, password, durable } = options
  removeIfEmpty(dataDir)
  const staging = join(dirname(dataDir), `${stagingPrefix(dataDir)}${process.pid}`)
  const fresh = join(staging, 'data')
  const passwordFile = join(staging, 'password')
  try {
    mkdirSync(fresh, { recursive: true, mode: 0o700 })
    writeFileSync(passwordFile, password, { mode: 0o600 })
    const { account } = binaries
    if (account) for (const path of [staging, fresh, passwordFile]) chownSync(path, account.uid, account.gid)
    const names = ['-D', fresh, '-U', SUPERUSER, `--pwfile=${passwordFile}`]
    const format = ['-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-instructions']
    const args = [...names, ...format, ...(durable ? [] : ['--no-sync'])]
    const { code, output } = await binaries.run('initdb', args)
    if (code !== 0) throw new Error(`initdb could not make ${dataDir}:\n${output.trim()}`)
    renameSync(fresh, dataDir)
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

const removeIfEmpty = (dataDir: string): void => {
  if (!existsSync(dataDir)) return
  if (readdirSync(dataDir).length > 0) throw new Error(`${dataDir} is not empty and holds no Postgres data.`)
  rmdirSync(dataDir)
}

/**
 * A killed run leaves `postmaster.pid`. Its process may be our server, may be dead, or may be a stranger
 * who was given the same number: only a proven server is signalled.
 */
const stopLeftover = async (binaries: PostgresBinaries, dataDir: string): Promise<void> => {
  const pidFile = join(dataDir, 'postmaster.pid')
  if (!existsSync(pidFile)) return
  const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10)
  if (await isServerOf(dataDir, pid)) {
    let said = ''
    for (const mode of ['fast', 'immediate']) {
      said = (
        await binaries.run('pg_ctl', ['stop', '-D', dataDir, '-m', mode, '-w', '-t', '30'])
      ).output.trim()
      if (await hasEnded(dataDir, pid)) return
    }
    throw new Error(`Postgres ${pid} does not stop:\n${said}`)
  }
  // The file of a dead server stays: Postgres reads in it whose shared memory must be unused, then replaces it.
  if (!(pid > 0) || isAlive(pid)) rmSync(pidFile, { force: true })
}

/** Postgres removes its pid file a moment before its process ends. */
const hasEnded = async (dataDir: string, pid: number): Promise<boolean> => {
  for (let tries = 0; tries < 40; tries++) {
    if (!(await isServerOf(dataDir, pid))) return true
    await delay(50)
  }
  return false
}

const isServerOf = async (dataDir: string, pid: number): Promise<boolean> => {
  if (!(pid > 0) || !isAlive(pid)) return false
  // There pg_ctl signals through a named pipe that only Postgres opens: no stranger can be hit.
  if (process.platform === 'win32') return true
  const [program, flag, folder] = await commandLine(pid)
  return basename(program ?? '') === 'postgres' && flag === '-D' && folder === dataDir
}

const commandLine = async (pid: number): Promise<string[]> => {
  try {
    // Slim Linux images carry no ps.
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)])
    return stdout.split(/ (-D) (.*?) -c /)
  } catch {
    return []
  }
}
