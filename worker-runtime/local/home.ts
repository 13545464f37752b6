import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../command.ts'
import { newPassword, type Runtime } from '../database-login.ts'
import { describeError } from '../describe-error.ts'
import { createSigningKey } from '../signing-key.ts'

/** Where the local system keeps what it must find again: data, keys, and who is using them. */
export type Home = {
  readonly postgresDir: string
  readonly postgresPassword: string
  readonly wranglerDir: string
  /** The built functions, and what plain workerd keeps. */
  readonly workerdDir: string
  /** What a runtime connects as. The name is this home's own: roles belong to the whole server. */
  loginOf(runtime: Runtime): { name: string; password: string }
  /** Private JWK set, as the AUTH_KEYS binding takes it. */
  readonly authKeys: string
  /** Writes the bindings of the functions where only this user can read them, and answers the file's path. */
  writeBindings(bindings: Record<string, string>): string
  /** Tells commands of this machine where the database is, until `unlock`. */
  tellDatabaseUrl(url: string): void
  /** And which port of this machine the jobs of `npm run demo` may call. */
  tellDemoPort(port: number): void
  unlock(): void
}

export const openHome = (path: string): Home => {
  const root = resolve(path)
  createFolder(root)
  const lock = takeLock(join(root, 'dev.lock'), root)
  // Told by a run that was killed: what it allowed, this one may not allow.
  rmSync(join(root, DEMO_PORT_FILE), { force: true })
  return {
    postgresDir: join(root, 'postgres'),
    postgresPassword: keepSecret(join(root, 'postgres-password'), newPassword),
    wranglerDir: join(root, 'wrangler'),
    workerdDir: join(root, 'workerd'),
    loginOf: (runtime) => {
      const id = keepSecret(join(root, 'login-id'), () => randomBytes(4).toString('hex'))
      return {
        name: `smartqueue_${id}_${runtime}`,
        password: keepSecret(join(root, `${runtime}-password`), newPassword),
      }
    },
    authKeys: keepSecret(join(root, 'auth-keys.json'), createAuthKeys),
    writeBindings: (bindings) => {
      const file = join(root, 'functions.vars')
      const lines = Object.entries(bindings).map(([name, value]) => `${name}=${quoted(value)}\n`)
      writeFileSync(file, lines.join(''), { mode: 0o600 })
      return file
    },
    tellDatabaseUrl: (url) => {
      const file = join(root, DATABASE_URL_FILE)
      rmSync(file, { force: true })
      writeFileSync(file, url, { mode: 0o600 })
    },
    tellDemoPort: (port) => writeFileSync(join(root, DEMO_PORT_FILE), String(port)),
    unlock: () => {
      for (const told of [DATABASE_URL_FILE, DEMO_PORT_FILE]) rmSync(join(root, told), { force: true })
      lock.release()
    },
  }
}

/** Between these wrangler reads a value as it stands. None of ours contains both. */
const quoted = (value: string): string => (value.includes("'") ? `\`${value}\`` : `'${value}'`)

const createFolder = (root: string): void => {
  try {
    // Others may pass through: started as root, Postgres runs as `nobody` below it.
    mkdirSync(root, { recursive: true, mode: 0o755 })
  } catch (error) {
    throw new UsageError(`SMARTQUEUE_HOME: ${root} cannot be used: ${describeError(error)}`)
  }
}

const keepSecret = (file: string, create: () => string): string => {
  if (!existsSync(file)) writeFileSync(file, create(), { mode: 0o600, flag: 'wx' })
  return readFileSync(file, 'utf8')
}

const createAuthKeys = (): string => JSON.stringify({ keys: [createSigningKey()] })

const DATABASE_URL_FILE = 'database-url'

const DEMO_PORT_FILE = 'demo-port'

/** Where the running system of a home has its database; undefined if none runs. */
export const readDatabaseUrl = (path: string): string | undefined => readTold(path, DATABASE_URL_FILE)

/** The port that jobs of the demo may call; undefined if none runs, or SMARTQUEUE_HTTP_ALLOW says what they may. */
export const readDemoPort = (path: string): number | undefined => {
  const text = readTold(path, DEMO_PORT_FILE)
  return text === undefined ? undefined : Number(text)
}

const readTold = (path: string, name: string): string | undefined => {
  const file = join(resolve(path), name)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/**
 * The lock holds the pid of its owner. One whose owner is gone was left by a killed run, and is taken over.
 * It appears whole, by a link, and a stale one goes by a rename: of two starters only one gets either.
 */
const takeLock = (file: string, root: string): { release(): void } => {
  const own = `${file}.${process.pid}`
  writeFileSync(own, String(process.pid))
  try {
    while (!linked(own, file)) removeStale(file, root)
  } finally {
    rmSync(own, { force: true })
  }
  return { release: () => rmSync(file, { force: true }) }
}

const linked = (from: string, to: string): boolean => {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

const removeStale = (file: string, root: string): void => {
  const owner = readOwner(file)
  if (owner !== undefined && isLocalRunner(owner)) {
    throw new UsageError(
      `SmartQueue already runs from ${root} (pid ${owner}). Stop it, or set SMARTQUEUE_HOME.`,
    )
  }
  const aside = `${file}.stale-${process.pid}`
  try {
    renameSync(file, aside)
  } catch (error) {
    // Another starter was faster; look again.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  // What was moved may by now be the lock of that other starter: give it back.
  if (readOwner(aside) !== owner) linked(aside, file)
  rmSync(aside)
}

const readOwner = (file: string): number | undefined => {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

const isLocalRunner = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it runs, as somebody else.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  // The pid may have been given to another program since. Where /proc cannot tell, believe the lock.
  const cmdline = `/proc/${pid}/cmdline`
  return !existsSync(cmdline) || /\/(dev|functions)\.ts/.test(readFileSync(cmdline, 'utf8'))
}
