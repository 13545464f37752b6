/**
 * Bundles the functions for plain workerd, as `wrangler deploy` would upload them, and lists their assets. A program of its
 * own, because wrangler takes 100 MB that need not stay loaded.
 */
import { execFile } from 'node:child_process'
import { cp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { unstable_readConfig } from 'wrangler'
import { offlineWrangler } from '../functions-server.ts'
import { listAssets } from './assets.ts'
import type { BuiltFunctions } from './config.ts'

const CONFIG = 'wrangler.toml'
const ASSETS = 'assets'

/** The settings we read. Wrangler's own types depend on packages that are not installed. */
type Config = {
  compatibility_date?: string
  compatibility_flags: string[]
  vars: Record<string, string>
  durable_objects: { bindings: { name: string; class_name: string }[] }
  assets?: { directory?: string; run_worker_first?: string[] | boolean }
}
const HERE = dirname(fileURLToPath(import.meta.url))

const bundleFunctions = async (folder: string): Promise<void> => {
  const wrangler = join(
    dirname(createRequire(import.meta.url).resolve('wrangler/package.json')),
    'bin/wrangler.js',
  )
  const args = [wrangler, 'deploy', '--dry-run', '--config', CONFIG, '--outdir', folder]
  const env = { ...process.env, ...offlineWrangler(folder) }
  await promisify(execFile)(process.execPath, args, { env })
}

/** The entry, which serves assets before it asks the functions. */
const bundleEntry = (folder: string) =>
  build({
    entryPoints: [join(HERE, 'entry-worker.ts'), join(HERE, 'assets-worker.ts')],
    outdir: folder,
    bundle: true,
    format: 'esm',
    external: ['./index.js', './assets.json'],
    logLevel: 'error',
  })

const main = async (folder: string): Promise<void> => {
  await Promise.all([bundleFunctions(folder), bundleEntry(folder)])
  const { compatibility_date, compatibility_flags, vars, durable_objects, assets }: Config =
    unstable_readConfig({
      config: CONFIG,
    })
  if (!compatibility_date || !assets?.directory) {
    throw new Error(`${CONFIG} must set compatibility_date and assets.directory`)
  }
  const { run_worker_first: workerFirst = [] } = assets
  if (!Array.isArray(workerFirst) || workerFirst.some((path) => /[*!]/.test(path))) {
    throw new Error(`${CONFIG}: run_worker_first must be a list of paths without patterns`)
  }
  // A copy: the next build must not change what is being served.
  await rm(join(folder, ASSETS), { recursive: true, force: true })
  await cp(assets.directory, join(folder, ASSETS), { recursive: true })
  const built: BuiltFunctions = {
    compatibilityDate: compatibility_date,
    compatibilityFlags: compatibility_flags,
    vars,
    objects: durable_objects.bindings.map(({ name, class_name }) => ({ name, className: class_name })),
    assets: join(folder, ASSETS),
  }
  const listed = listAssets(built.assets, workerFirst)
  await writeFile(join(folder, 'assets.json'), JSON.stringify(listed))
  await writeFile(join(folder, 'functions.json'), JSON.stringify(built))
}

const [folder] = process.argv.slice(2)
if (!folder) throw new Error('Usage: build.ts FOLDER')
await main(folder)
