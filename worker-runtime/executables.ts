import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'

/** Reads `/usr/bin/ffmpeg, /opt/reports/build`: what shell jobs may run. Throws naming the entry that is of no use. */
export const parseExecutables = (text: string): readonly string[] => {
  if (process.platform === 'win32')
    throw new Error('shell jobs need process groups, which Windows does not have')
  const paths = text.split(',').map((entry) => entry.trim())
  for (const path of paths) requireExecutable(path)
  return [...new Set(paths)]
}

const requireExecutable = (path: string): void => {
  if (path === '') throw new Error('an entry between commas is empty')
  if (!isAbsolute(path)) throw new Error(`"${path}" is not an absolute path`)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw new Error(`"${path}" does not exist`)
  if (!found.isFile()) throw new Error(`"${path}" is not a file`)
  try {
    accessSync(path, constants.X_OK)
  } catch {
    throw new Error(`"${path}" is not executable`)
  }
}
