import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { offlineWrangler } from '../../worker-runtime/local/functions-server.ts'

const run = promisify(execFile)

/** The file that a deployment would upload, while `use` looks at it. */
export const withBundle = async <Value>(
  { config, main }: { config: string; main: string },
  use: (file: string) => Promise<Value>,
): Promise<Value> => {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-bundle-'))
  try {
    await bundle(config, folder)
    return await use(join(folder, main))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The Worker for all tests: to bundle it, and to make its assets, at each start of workerd takes half of the time of one. */
export const bundleForTests = async (folder: string): Promise<void> => {
  await bundle(THE_WORKER.config, folder, 'test/support/edge-worker.ts')
  await rename(join(folder, 'edge-worker.js'), join(folder, THE_WORKER.main))
}

/** Where `npm test` has put it. */
export const workerOfTests = (): string => {
  const folder = process.env.TEST_WORKER_FOLDER
  if (!folder) throw new Error('Run the tests with npm test: it bundles the Worker')
  return join(folder, THE_WORKER.main)
}

const bundle = async (config: string, folder: string, ...entry: string[]): Promise<void> => {
  const wrangler = createRequire(import.meta.url).resolve('wrangler/package.json')
  const args = ['deploy', ...entry, '--dry-run', '--config', config, '--outdir', folder]
  await run(process.execPath, [join(dirname(wrangler), 'bin/wrangler.js'), ...args], {
    env: { ...process.env, ...offlineWrangler(folder) },
  })
}

export const gzipBytes = async (file: string): Promise<number> =>
  gzipSync(await readFile(file), { level: 9 }).length

export const THE_WORKER = { config: 'wrangler.toml', main: 'index.js' }
