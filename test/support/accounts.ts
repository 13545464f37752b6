import assert from 'node:assert/strict'
import type { Edge } from './edge.ts'

export type TestAccount = { username: string; password: string; token: string; userId: string; orgId: string }

let created = 0

/** Registers through the API and answers what is needed to act as the account. */
export const registerUser = async (edge: Edge): Promise<TestAccount> => {
  const username = `user-${process.pid}-${++created}`
  const password = 'correct horse battery'
  const { status, body, text } = await edge.request('POST', '/auth/register', {
    json: { username, password },
  })
  assert.equal(status, 201, text)
  return { username, password, token: body.access_token, userId: body.user.id, orgId: body.user.org_id }
}
