import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mock, test } from 'node:test'
import { createTokenVerifier, signAccessToken } from '../../functions/auth/access-token.ts'
import { createKeyRing } from '../../functions/auth/key-ring.ts'
import type { PrivateKey } from '../../functions/bindings.ts'

const newKeys = () => {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) as unknown as PrivateKey
  return createKeyRing([{ ...jwk, kid: 'test' }])
}

const session = () => {
  const [user_id, org_id, session_id, secret] = Array.from({ length: 4 }, () => crypto.randomUUID())
  if (!user_id || !org_id || !session_id || !secret) throw new Error('Four were made')
  return { user_id, org_id, session_id, secret, role: 'user' as const }
}

test('a cached token yields the same principal, and still expires', async () => {
  const keys = newKeys()
  const { verify } = createTokenVerifier(keys)
  const own = session()
  const token = await signAccessToken(keys, own)
  const first = await verify(token)
  assert.ok(typeof first === 'object')
  assert.deepEqual([first.user_id, first.org_id, first.secret], [own.user_id, own.org_id, own.secret])
  assert.equal(await verify(token), first)
  mock.timers.enable({ apis: ['Date'], now: first.expires_at ?? 0 })
  assert.equal(await verify(token), 'expired')
  mock.timers.reset()
})

test('a tampered token is never served from the cache', async () => {
  const keys = newKeys()
  const { verify } = createTokenVerifier(keys)
  const token = await signAccessToken(keys, session())
  await verify(token)
  const [header, , signature] = token.split('.')
  const [, others] = (await signAccessToken(keys, session())).split('.')
  assert.equal(await verify(`${header}.${others}.${signature}`), 'invalid')
  assert.equal(await verify(`${header}.${others}.${signature}`), 'invalid')
})
