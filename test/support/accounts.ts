import assert from 'node:assert/strict'
import type { Edge } from './edge.ts'

export type TestAccount = { username: string; password: string; token: string; userId: string; orgId: string }

let created = 0
let networks = 0

/** Each request from a network of its own: what is limited for each is not what most tests are about. */
export const fromElsewhere = (): Record<string, string> => {
  networks++
  return { 'cf-connecting-ip': `10.${(networks >> 16) & 255}.${(networks >> 8) & 255}.${networks & 255}` }
}

/** Registers through the API and answers what is needed to act as the account. */
export const registerUser = async (edge: Edge): Promise<TestAccount> => {
  const username = `user-${process.pid}-${++created}`
  const password = 'correct horse battery'
  const { status, body, text } = await edge.request('POST', '/auth/register', {
    json: { username, password },
    headers: fromElsewhere(),
  })
  assert.equal(status, 201, text)
  return { username, password, token: body.access_token, userId: body.user.id, orgId: body.user.org_id }
}
