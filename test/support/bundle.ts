import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { offlineWrangler } from '../../worker-runtime/local/functions-server.ts'

const run = promisify(execFile)

/** Puts what a deployment would upload into the folder, and makes the assets on the way. */
export const bundleInto = async (folder: string, config: string): Promise<void> => {
  const wrangler = createRequire(import.meta.url).resolve('wrangler/package.json')
  const args = ['deploy', '--dry-run', '--config', config, '--outdir', folder]
  await run(process.execPath, [join(dirname(wrangler), 'bin/wrangler.js'), ...args], {
    env: { ...process.env, ...offlineWrangler(folder) },
  })
}

/** The file that a deployment would upload, while `use` looks at it. */
export const withBundle = async <Value>(
  { config, main }: { config: string; main: string },
  use: (file: string) => Promise<Value>,
): Promise<Value> => {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-bundle-'))
  try {
    await bundleInto(folder, config)
    return await use(join(folder, main))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const gzipBytes = async (file: string): Promise<number> =>
  gzipSync(await readFile(file), { level: 9 }).length

/** The Worker, bundled when the tests were started. */
export const bundledFolder = (): string => {
  const folder = process.env.TEST_WORKER_BUNDLE
  if (!folder) throw new Error('Run the tests with npm test: it bundles the Worker for all of them')
  return folder
}

export const THE_WORKER = { config: 'wrangler.toml', main: 'index.js' }
