import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder that others may pass through: started by root, Postgres runs as `nobody` below it. */
export const createTestFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-test-'))
  await chmod(folder, 0o755)
  return folder
}
