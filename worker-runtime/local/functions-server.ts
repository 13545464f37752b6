import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type ProcessGroup, trackGroup } from './process-group.ts'

const WRANGLER = join(
  dirname(createRequire(import.meta.url).resolve('wrangler/package.json')),
  'bin/wrangler.js',
)

/** `ready` resolves when the functions answer and find their database, or when they have ended. */
export type FunctionsServer = ProcessGroup & { readonly ready: Promise<void> }

/** The functions on real workerd. */
export const spawnFunctions = (options: {
  /** Where to listen, if not on loopback. */
  ip?: string
  port: number
  bindingsFile: string
  stateDir: string
  /** wrangler would start a crashed workerd again, and hide that it crashes. */
  onCrash: () => void
}): FunctionsServer => {
  const args = [
    ...['dev', '--ip', options.ip ?? '127.0.0.1', '--port', String(options.port), '--inspector-port', '0'],
    ...['--env-file', options.bindingsFile, '--persist-to', options.stateDir],
    ...['--log-level', 'warn', '--show-interactive-dev-session', 'false'],
  ]
  const child = spawn(process.execPath, [WRANGLER, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...offlineWrangler(options.stateDir),
      ...(process.stdout.isTTY && { FORCE_COLOR: '1' }),
    },
  })
  passOn(child.stdout, process.stdout, options.onCrash)
  passOn(child.stderr, process.stderr, options.onCrash)
  const group = trackGroup(child, { signal: 'SIGTERM', graceMs: 5_000 })
  return { ...group, ready: untilReady(options.ip, options.port, group.exited) }
}

export const untilReady = async (
  ip: string | undefined,
  port: number,
  exited: Promise<string>,
): Promise<void> => {
  // An address for all interfaces is none to connect to.
  const host = ip === undefined || ip === '0.0.0.0' || ip === '::' ? '127.0.0.1' : ip
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`
  let ended = false
  exited.then(() => {
    ended = true
  })
  while (!ended) {
    const ready = await fetch(url).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return
    await delay(50)
  }
}

const CRASH_LINE = 'The Workers runtime crashed unexpectedly'

const passOn = (from: Readable, to: Writable, onCrash: () => void): void => {
  createInterface({ input: from }).on('line', (line) => {
    to.write(`${line}\n`)
    if (line.includes(CRASH_LINE)) onCrash()
  })
}

/** Keeps wrangler from asking anything outside this machine, and its files in one place. */
export const offlineWrangler = (stateDir: string) => ({
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_WRITE_LOGS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  XDG_CONFIG_HOME: join(stateDir, 'config'),
})
