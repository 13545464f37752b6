import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type ProcessGroup, trackGroup } from './process-group.ts'

const WRANGLER = join(
  dirname(createRequire(import.meta.url).resolve('wrangler/package.json')),
  'bin/wrangler.js',
)

/** The functions on real workerd. */
export const spawnFunctions = (options: {
  port: number
  bindingsFile: string
  stateDir: string
}): ProcessGroup => {
  const args = [
    ...['dev', '--ip', '127.0.0.1', '--port', String(options.port), '--inspector-port', '0'],
    ...['--env-file', options.bindingsFile, '--persist-to', options.stateDir],
    ...['--log-level', 'warn', '--show-interactive-dev-session', 'false'],
  ]
  const child = spawn(process.execPath, [WRANGLER, ...args], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...offlineWrangler(options.stateDir) },
  })
  return trackGroup(child, { signal: 'SIGTERM', graceMs: 5_000 })
}

/** Keeps wrangler from asking anything outside this machine, and its files in one place. */
export const offlineWrangler = (stateDir: string) => ({
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_LOG_PATH: join(stateDir, 'logs'),
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  XDG_CONFIG_HOME: join(stateDir, 'config'),
})
