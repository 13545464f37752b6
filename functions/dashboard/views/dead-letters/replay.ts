import type { Replayed } from '../../api/answers.ts'

export type Selection = { fingerprint: string } | { type: string } | { all: true }

export type Outcome = { replayed: number /** Why it ended before all were replayed. */; stopped: unknown }

/**
 * One request replays many jobs, but not without end: the same one again goes on. What fails again meanwhile is not replayed
 * twice: it ends with as many as there were at the beginning.
 */
export const replay = async (
  send: (selection: Selection) => Promise<Replayed>,
  selection: Selection,
  most: number,
): Promise<Outcome> => {
  let replayed = 0
  try {
    for (let done = false; !done && replayed < most; ) {
      const answer = await send(selection)
      replayed += answer.replayed
      done = answer.done || answer.replayed === 0
    }
  } catch (error) {
    if (replayed === 0) throw error
    return { replayed, stopped: error }
  }
  return { replayed, stopped: undefined }
}
