import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

/**
 * Scrypt at N = 2^14, r = 8, p = 5: OWASP's second setting, 16 MiB and about 165 ms on workerd.
 * The cost stands in each hash, so that it can be raised while old hashes still verify.
 */
const COST = { logN: 14, r: 8, p: 5 }
const KEY_BYTES = 32

/** `scrypt$logN$r$p$salt$key`, the last two in base64. */
export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(16)
  const key = await deriveKey(password, salt, COST)
  return ['scrypt', COST.logN, COST.r, COST.p, salt.toString('base64'), key.toString('base64')].join('$')
}

export const verifyPassword = async (password: string, hash: string): Promise<boolean> => {
  const [scheme, logN, r, p, salt, key] = hash.split('$')
  if (scheme !== 'scrypt' || !salt || !key) throw new Error('A stored password hash has an unknown form')
  const derived = await deriveKey(password, Buffer.from(salt, 'base64'), {
    logN: Number(logN),
    r: Number(r),
    p: Number(p),
  })
  return timingSafeEqual(derived, Buffer.from(key, 'base64'))
}

/** Costs what a check costs. Spent on unknown names, so that the time of an answer does not tell them apart. */
export const spendPasswordCheck = (password: string): Promise<boolean> => verifyPassword(password, DUMMY_HASH)

/** A hash of the form and cost of all others, which no password is known to have. */
const DUMMY_HASH = [
  ...['scrypt', COST.logN, COST.r, COST.p],
  ...[16, KEY_BYTES].map((bytes) => Buffer.alloc(bytes).toString('base64')),
].join('$')

const deriveKey = (password: string, salt: Buffer, cost: typeof COST): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const options = { N: 2 ** cost.logN, r: cost.r, p: cost.p }
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
