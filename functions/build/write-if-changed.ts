import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** A server that watches the assets starts over at each write. */
export const writeIfChanged = async (path: string, contents: Uint8Array): Promise<void> => {
  const existing = await readFile(path).catch(() => undefined)
  if (existing?.equals(contents)) return
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, contents)
}
