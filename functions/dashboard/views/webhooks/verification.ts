import type { Source } from '../../api/answers.ts'

/** How a source verifies, as it can be sent back: the API answers with what follows from it, too. */
export const verificationOf = ({ verification }: Source): Record<string, string> => {
  const { tolerance_seconds: _, ...sendable } = verification
  const given = Object.entries(sendable).filter((entry): entry is [string, string] => Boolean(entry[1]))
  return Object.fromEntries(given)
}
