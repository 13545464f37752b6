import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type FunctionsServer, untilReady } from '../functions-server.ts'
import { trackGroup } from '../process-group.ts'
import { type BuiltFunctions, workerdConfig } from './config.ts'

const BUILD = fileURLToPath(new URL('build.ts', import.meta.url))

/** Builds the functions of a checkout into this folder. Takes two seconds. */
export const buildFunctions = async (folder: string, checkout = '.'): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  await promisify(execFile)(process.execPath, [BUILD, resolve(folder)], { cwd: checkout })
}

/** The functions as `buildFunctions` left them, on plain `workerd serve`. */
export const serveFunctions = (options: {
  /** Where to listen, if not on loopback. */
  ip?: string
  port: number
  /** Where they were built. Storage of the stream's objects goes there, too. */
  folder: string
  bindings: Record<string, string>
}): FunctionsServer => {
  const { ip = '127.0.0.1', port } = options
  const folder = resolve(options.folder)
  const built: BuiltFunctions = JSON.parse(readFileSync(join(folder, 'functions.json'), 'utf8'))
  const storage = join(folder, 'objects')
  mkdirSync(storage, { recursive: true })
  const bindings = { ...built.vars, ...options.bindings }
  const file = join(folder, 'workerd.capnp')
  const host = ip.includes(':') ? `[${ip}]` : ip
  const config = { bindings: Object.keys(bindings), listenOn: `${host}:${port}`, storage }
  writeFileSync(file, workerdConfig(built, config))
  const child = spawn(workerdProgram(), ['serve', file], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...bindings },
  })
  const group = trackGroup(child, { signal: 'SIGTERM', graceMs: 5_000 })
  return { ...group, ready: untilReady(ip, port, group.exited) }
}

/** The workerd binary that wrangler depends on. */
const workerdProgram = (): string => {
  const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'))
  return ofWrangler('workerd').default
}
