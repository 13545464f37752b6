import { randomBytes, scrypt } from 'node:crypto'

/**
 * Scrypt at N = 2^14, r = 8, p = 5: OWASP's second setting, 16 MiB and about 165 ms on workerd.
 * The cost stands in each hash, so that it can be raised while old hashes still verify.
 */
const COST = { logN: 14, r: 8, p: 5 }
const KEY_BYTES = 32

/** `scrypt$logN$r$p$salt$key`, the last two in base64. */
export const hashPassword = (password: string): Promise<string> =>
  hashWith(password, parametersOf(randomBytes(16)))

/**
 * Hashes a password as a stored hash was made, whose parameters are all of it but the key: the database compares the
 * two. Without parameters, for an unknown name, it costs the same, so that the time of an answer does not tell.
 */
export const hashWith = async (password: string, parameters: string | null): Promise<string> => {
  const used = parameters ?? parametersOf(Buffer.alloc(16))
  const [scheme, logN, r, p, salt] = used.split('$')
  if (scheme !== 'scrypt' || !salt) throw new Error('A stored password hash has an unknown form')
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) }
  const key = await deriveKey(password, Buffer.from(salt, 'base64'), cost)
  return `${used}$${key.toString('base64')}`
}

const parametersOf = (salt: Buffer): string =>
  ['scrypt', COST.logN, COST.r, COST.p, salt.toString('base64')].join('$')

const deriveKey = (password: string, salt: Buffer, cost: typeof COST): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const options = { N: 2 ** cost.logN, r: cost.r, p: cost.p }
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
