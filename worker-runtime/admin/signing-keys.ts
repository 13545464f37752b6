import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { UsageError } from '../command.ts'
import { createSigningKey } from '../signing-key.ts'
import type { AdminCommand } from './command.ts'

const keySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), d: z.string() })).min(1) })

/**
 * Rotation without signing anyone out. First every copy of the functions must know the new key, then one may sign with it:
 * the new key is added behind the others, `--promote` brings it to the front, and once the tokens of the old one
 * have expired, `--retire` leaves the first alone. Between two steps the set is deployed.
 */
export const signingKeyCommand: AdminCommand = {
  usage: 'signing-key [--file FILE] [--promote KID | --retire]',
  about:
    'add a key to a set of signing keys; --promote: sign with that one; --retire: drop all but the first',
  connects: false,
  run: async ({ options: { file, promote, retire } }) => {
    const before = file === undefined ? [] : await readKeys(file)
    if (promote !== undefined && retire)
      throw new UsageError('--promote and --retire are two steps: deploy between them')
    if (retire && before.length === 0) throw new UsageError('--retire needs the --file that holds the keys')
    if (promote !== undefined && !before.some(({ kid }) => kid === promote)) {
      throw new UsageError(`--promote: there is no key ${promote} in the --file`)
    }
    const keys = retire
      ? before.slice(0, 1)
      : promote === undefined
        ? [...before, createSigningKey()]
        : inFront(before, promote)
    const text = JSON.stringify({ keys })
    const kids = keys.map(({ kid }) => kid)
    if (file === undefined) return { text, data: { keys } }
    // By a rename: whoever reads it meanwhile sees the old set or the new one.
    await writeFile(`${file}.new`, text, { mode: 0o600 })
    await rename(`${file}.new`, file)
    const count = kids.length === 1 ? 'one key' : `${kids.length} keys`
    return {
      text: `${file}: ${count} (${kids.join(', ')}), the first signs. Deploy it, or restart.`,
      data: { file, kids },
    }
  },
}

type Keys = z.output<typeof keySet>['keys']

const inFront = (keys: Keys, kid: string): Keys => [
  ...keys.filter((key) => key.kid === kid),
  ...keys.filter((key) => key.kid !== kid),
]

const readKeys = async (file: string): Promise<Keys> => {
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
