import { existsSync } from 'node:fs'
import { mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const STAMPS = join(ROOT, 'node_modules/.cache')
/** Run in the browser, or are made here. */
const NOT_THE_API = /^functions\/(dashboard|assets)(\/|$)/

/** Does the work for an asset if a source of the API is younger than the last time that it was done. */
export const ifChanged = async (asset: string, work: () => Promise<void>): Promise<void> => {
  const stamp = join(STAMPS, `smartqueue-${asset}.built`)
  const builtAtMs = existsSync(join(ROOT, 'functions/assets', asset)) ? await modifiedAtMs(stamp) : 0
  const beganAt = new Date()
  if (builtAtMs > (await newestSourceMs())) return
  await work()
  await mkdir(STAMPS, { recursive: true })
  await writeFile(stamp, '')
  // As of the beginning: what was changed meanwhile is not in it.
  await utimes(stamp, beganAt, beganAt)
}

/** Folders too: one is as young as what was last removed from it. */
const newestSourceMs = async (): Promise<number> => {
  const folders = await Promise.all(['functions', 'db'].map(listSources))
  const paths = ['package-lock.json', ...folders.flat()]
  return Math.max(...(await Promise.all(paths.map((path) => modifiedAtMs(join(ROOT, path))))))
}

const listSources = async (folder: string): Promise<string[]> => {
  const found = await readdir(join(ROOT, folder), { recursive: true })
  return [folder, ...found.map((path) => join(folder, path))].filter((path) => !NOT_THE_API.test(path))
}

const modifiedAtMs = async (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )
