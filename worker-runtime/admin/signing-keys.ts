import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { UsageError } from '../command.ts'
import { createSigningKey } from '../signing-key.ts'
import type { AdminCommand } from './command.ts'

const keySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), d: z.string() })).min(1) })

/**
 * Rotation without signing anyone out: the new key signs, the old ones still verify for the ten minutes that their tokens
 * live, and then `--retire` leaves the first alone.
 */
export const signingKeyCommand: AdminCommand = {
  usage: 'signing-key [--file FILE] [--retire]',
  about: 'put a new key in front of a set of signing keys; with --retire drop all but the first',
  connects: false,
  run: async ({ options: { file, retire } }) => {
    const before = file === undefined ? [] : await readKeys(file)
    if (retire && before.length === 0) throw new UsageError('--retire needs the --file that holds the keys')
    const keys = retire ? before.slice(0, 1) : [createSigningKey(), ...before]
    const text = JSON.stringify({ keys })
    const kids = keys.map(({ kid }) => kid)
    if (file === undefined) return { text, data: { keys } }
    // By a rename: whoever reads it meanwhile sees the old set or the new one.
    await writeFile(`${file}.new`, text, { mode: 0o600 })
    await rename(`${file}.new`, file)
    return {
      text: `${file}: ${kids.length === 1 ? 'one key' : `${kids.length} keys`}, ${kids[0]} signs. Restart or deploy to use it.`,
      data: { file, kids },
    }
  },
}

const readKeys = async (file: string): Promise<z.output<typeof keySet>['keys']> => {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return []
  const parsed = keySet.safeParse(parseJson(text))
  if (!parsed.success) throw new UsageError(`${file} does not hold a JWK set of private keys.`)
  return parsed.data.keys
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
