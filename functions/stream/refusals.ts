import { membershipEnded } from '../auth/permit.ts'
import { DatabaseUnavailable } from '../database-errors.ts'
import { ProblemError } from '../http/problem.ts'
import { CLOSE, type Refusal } from './close-codes.ts'
import { MOST_OF_ONE, MOST_SUBSCRIBERS } from './hub.ts'

const ABOUT: Record<Refusal, { code: number; reason: string }> = {
  ended: { code: CLOSE.ended, reason: 'The sign-in or the API key has ended.' },
  removed: { code: CLOSE.removed, reason: 'Not a member of the organisation.' },
  ticket: { code: CLOSE.ended, reason: 'The ticket was used or has expired. POST /jobs/stream/tickets.' },
  'no-job': { code: CLOSE.badRequest, reason: 'There is no such job in the organisation.' },
  unavailable: { code: CLOSE.tryLater, reason: 'The database does not answer. Try again later.' },
  full: { code: CLOSE.tryLater, reason: `${MOST_SUBSCRIBERS} follow this organisation already.` },
  'too-many': { code: CLOSE.tryLater, reason: `You follow ${MOST_OF_ONE} times already. Close some.` },
}

/** What a program is told, to which no socket is opened. */
export const problemOf = (refusal: Refusal): Error => {
  const { reason } = ABOUT[refusal]
  if (refusal === 'no-job') return new ProblemError('not-found', reason)
  if (refusal === 'unavailable') return new DatabaseUnavailable(reason, { rolledBack: true })
  return refusal === 'full' || refusal === 'too-many'
    ? new ProblemError('limit-reached', reason)
    : membershipEnded()
}

/** The client's end of a socket that says why it closes. */
export const closedSocket = (refusal: Refusal): WebSocket => {
  const { code, reason } = ABOUT[refusal]
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  server.close(code, reason)
  return client
}
