import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let account: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  account = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const claims = () => ({
  sub: account.userId,
  org: account.orgId,
  role: 'user',
  iss: 'smartqueue',
  aud: 'smartqueue',
})

const sign = async (options: { claims?: object; issuedAt?: number; kid?: string } = {}): Promise<string> => {
  const issuedAt = options.issuedAt ?? Math.floor(Date.now() / 1000)
  return new SignJWT({ ...claims(), ...options.claims })
    .setProtectedHeader({ alg: 'EdDSA', kid: options.kid ?? 'test' })
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + 600)
    .sign(await importJWK(edge.authKeys.keys[0] ?? {}, 'EdDSA'))
}

const refused: [string, () => Promise<string | undefined> | string | undefined][] = [
  ['no token at all', () => undefined],
  ['an empty bearer', () => ''],
  ['something that is no token', () => 'hello'],
  ['a token that has expired', () => sign({ issuedAt: Math.floor(Date.now() / 1000) - 601 })],
  ['a payload that was changed', () => tamper(account.token)],
  ['a signature that was cut off', () => account.token.slice(0, account.token.lastIndexOf('.') + 1)],
  ['alg none', () => new UnsecuredJWT(claims()).setIssuedAt().setExpirationTime('10m').encode()],
  ['HS256 keyed with the public key', () => signedWithPublicKey()],
  ['a key that is not ours', () => signedByStranger()],
  ['a key id that is not ours', () => sign({ kid: 'other' })],
  ['another issuer', () => sign({ claims: { iss: 'elsewhere' } })],
  ['another audience', () => sign({ claims: { aud: 'elsewhere' } })],
  ['an organisation that is no id', () => sign({ claims: { org: "'; drop table jobs; --" } })],
  ['a role that does not exist', () => sign({ claims: { role: 'root' } })],
]

for (const [what, token] of refused) {
  test(`${what} is refused with 401`, async () => {
    const bearer = await token()
    const headers: Record<string, string> = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    assertProblem(await edge.request('GET', '/jobs', { headers }), 401, 'unauthenticated')
    assertProblem(await edge.request('POST', '/jobs', { headers, json: {} }), 401, 'unauthenticated')
  })
}

test('a genuine token of an account that is gone submits nothing', async () => {
  await database.sql(`insert into job_types values ('test', '{}') on conflict do nothing`)
  const ghost = await sign({ claims: { sub: crypto.randomUUID(), org: crypto.randomUUID() } })
  const json = { name: 'n', type: 'test', payload: {} }
  assertProblem(await edge.request('POST', '/jobs', { token: ghost, json }), 401, 'unauthenticated')
})

const tamper = (token: string): string => {
  const [header, , signature] = token.split('.')
  const payload = Buffer.from(JSON.stringify({ ...claims(), role: 'admin', exp: 9_999_999_999 })).toString(
    'base64url',
  )
  return [header, payload, signature].join('.')
}

const signedWithPublicKey = (): Promise<string> =>
  new SignJWT(claims())
    .setProtectedHeader({ alg: 'HS256', kid: 'test' })
    .setIssuedAt()
    .setExpirationTime('10m')
    .sign(Buffer.from(edge.authKeys.keys[0]?.x ?? '', 'base64url'))

const signedByStranger = (): Promise<string> =>
  new SignJWT(claims())
    .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
    .setIssuedAt()
    .setExpirationTime('10m')
    .sign(generateKeyPairSync('ed25519').privateKey)
