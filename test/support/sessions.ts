import { createHash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { enter, type Member } from '../../db/queries/scope.ts'
import type { NewSession } from '../../db/queries/sign-in.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'

export const NOWHERE = { ip: null, userAgent: null, requestId: 'test' }

/** The credentials of a session that is about to be stored. */
export const newSession = () => ({
  sessionId: uuidV7(),
  keyId: null,
  secret: randomBytes(16).toString('hex'),
})

export const storedSession = ({ sessionId, secret }: { sessionId: string; secret: string }): NewSession => ({
  id: sessionId,
  secretHash: createHash('sha256').update(secret).digest('hex'),
  tokenHash: randomBytes(32).toString('hex'),
  days: 30,
})

/** Lets the transaction of a connection into the organisation of the member. */
export const enterAs = async (client: pg.ClientBase, member: Member): Promise<void> => {
  const { text, values } = enter(member, { leastRole: 'user' })
  await client.query(text, [...values])
}
