import assert from 'node:assert/strict'
import { fromElsewhere, registerUser, type TestAccount } from './accounts.ts'
import type { TestDatabase } from './database.ts'
import type { Answer, Edge } from './edge.ts'

/** An organisation with somebody in each role, and an admin of the whole system who is in none of it. */
export type Cast = { owner: TestAccount; member: TestAccount; admin: TestAccount; stranger: TestAccount }

export const makeCast = async (edge: Edge, database: TestDatabase): Promise<Cast> => {
  const [owner, guest, operator, stranger] = await Promise.all(
    Array.from({ length: 4 }, () => registerUser(edge)),
  )
  assert.ok(owner && guest && operator && stranger)
  await database.sql('update users set is_admin = true where id = $1', [operator.userId])
  const member = await join(edge, owner, guest)
  const admin = { ...operator, token: (await signIn(edge, operator)).body.access_token }
  return { owner, member, admin, stranger }
}

/** Invites by link, accepts, and makes the organisation the active one. */
export const join = async (edge: Edge, owner: TestAccount, guest: TestAccount): Promise<TestAccount> => {
  const { orgId } = owner
  const invited = await edge.request('POST', `/orgs/${orgId}/invite`, {
    token: owner.token,
    json: {},
    headers: fromElsewhere(),
  })
  assert.equal(invited.status, 201, invited.text)
  const { id, token } = invited.body
  const accepted = await edge.request('POST', `/orgs/invitations/${id}/accept`, {
    token: guest.token,
    json: { token },
  })
  assert.equal(accepted.status, 200, accepted.text)
  const switched = await edge.request('POST', `/orgs/${orgId}/switch`, { token: guest.token })
  assert.equal(switched.status, 200, switched.text)
  return { ...guest, orgId, token: switched.body.access_token }
}

export const signIn = (edge: Edge, { username, password }: TestAccount): Promise<Answer> =>
  edge.request('POST', '/auth/login', { json: { username, password }, headers: fromElsewhere() })
