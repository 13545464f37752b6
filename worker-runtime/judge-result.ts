import { describeError } from './describe-error.ts'
import { snoozedSeconds } from './handler-api.ts'
import type { EndedOutcome } from './outcome.ts'
import { toStorableJson, toStorableText } from './storable-json.ts'

/** Room for the 1 MiB body of an http job in base64, and what goes with it. */
const MAX_RESULT_BYTES = 2 * 1024 * 1024
const MAX_SNOOZE_SECONDS = 30 * 86_400
const MAX_MESSAGE_CHARACTERS = 4_000

/**
 * Converts a handler's result to an outcome. Reading the result may throw, because it comes from the handler.
 */
export const judgeResult = (result: unknown): EndedOutcome => {
  try {
    return judge(result)
  } catch (error) {
    const message = `The handler's result is not JSON: ${describeError(error)}`
    return refuseResult('unstorable_result', toStorableText(message, MAX_MESSAGE_CHARACTERS))
  }
}

const judge = (result: unknown): EndedOutcome => {
  if (result === undefined || result === null) return { kind: 'done', resultJson: null }
  const judged = (result as Partial<Judged>)[JUDGED]
  if (judged) return judged
  const seconds = snoozedSeconds(result)
  if (seconds !== undefined) {
    return { kind: 'snoozed', ms: Math.min(Math.max(seconds || 0, 0), MAX_SNOOZE_SECONDS) * 1000 }
  }
  const json = toStorableJson(result)
  if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return { kind: 'done', resultJson: json }
  return refuseResult('result_too_large', `The result is larger than ${MAX_RESULT_BYTES / 1024} KiB.`)
}

const refuseResult = (code: string, message: string): EndedOutcome => ({
  kind: 'failed',
  error: { code, message },
  permanent: true,
})

const JUDGED = Symbol('judged')
type Judged = { readonly [JUDGED]: EndedOutcome }

/** A result that was judged where it came to be, in a thread: only the outcome has crossed over. */
export const alreadyJudged = (outcome: EndedOutcome): Judged => ({ [JUDGED]: outcome })
