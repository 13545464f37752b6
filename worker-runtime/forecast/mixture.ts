/**
 * Who is listened to: the network, the baseline, and the steady level, each by how far off it has been lately. So what is said
 * is hardly ever worse than the best of them, also where there is nothing to learn and a network only thinks that it sees
 * something: on pure noise the network alone is 2 % worse than the level, and what is said is not.
 */

/** Fading sums of the absolute errors of each, in the order in which their answers are given. */
export type Mixture = readonly number[]

/** Everybody is as good. */
export const evenMixture: Mixture = [0, 0, 0]

/** An error counts half after so many windows. */
const HALF_LIFE = 1_440
const KEPT = 0.5 ** (1 / HALF_LIFE)
/** How fast one counts less with its error: with 2 % more it counts half. */
const SHARPNESS = 32
/** Errors that are no errors are still comparable. */
const LEAST_SUM = 1e-9

export const listen = (mixture: Mixture, answers: readonly number[]): number => {
  const best = Math.max(Math.min(...mixture), LEAST_SUM)
  let [sum, weight] = [0, 0]
  for (const [n, answer] of answers.entries()) {
    const share = (best / Math.max(mixture[n] ?? 0, LEAST_SUM)) ** SHARPNESS
    sum += share * answer
    weight += share
  }
  return sum / weight
}

export const judgeAnswers = (mixture: Mixture, errors: readonly number[]): Mixture =>
  errors.map((error, n) => KEPT * (mixture[n] ?? 0) + error)
