import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JobLog } from '../../handler-api.ts'

/** A folder that only this attempt has (0700), gone with it however it ends. */
export const withWorkFolder = async <Result>(
  log: JobLog,
  use: (folder: string) => Promise<Result>,
): Promise<Result> => {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-shell-'))
  try {
    return await use(folder)
  } finally {
    await remove(folder).catch((error: NodeJS.ErrnoException) => {
      log.warn(`The temporary folder could not be removed: ${error.code}.`)
    })
  }
}

const remove = async (folder: string): Promise<void> => {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // The command may have made folders that it locked itself out of.
    await unlock(folder)
    await rm(folder, { recursive: true, force: true })
  }
}

const unlock = async (folder: string): Promise<void> => {
  await chmod(folder, 0o700)
  const entries = await readdir(folder, { withFileTypes: true })
  for (const entry of entries) if (entry.isDirectory()) await unlock(join(folder, entry.name))
}
