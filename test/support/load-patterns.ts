import { createRandom } from '../../functions/prediction/lstm/random.ts'

/** Work by the minute as it might come, in milliseconds: so many jobs by chance, each of a length by chance. */
export type LoadPattern = (minutes: number, seed: number) => Float64Array

const MEAN_JOB_MS = 2_000
const JOB_SPREAD = 0.8

/** `rate` says how many jobs are to be expected in a minute. */
export const comeAt =
  (rate: (minute: number, random: () => number) => number): LoadPattern =>
  (minutes, seed) => {
    const random = createRandom(seed)
    return Float64Array.from({ length: minutes }, (_, minute) => {
      const jobs = drawPoisson(Math.max(0, rate(minute, random)), random)
      let workMs = 0
      for (let n = 0; n < jobs; n++) workMs += MEAN_JOB_MS * Math.exp(JOB_SPREAD * drawNormal(random))
      return workMs
    })
  }

export const drawNormal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

/** Knuth's, by products of uniform numbers; in parts, as e^−λ of a large λ is 0. */
const drawPoisson = (mean: number, random: () => number): number => {
  if (mean > 30) return drawPoisson(mean / 2, random) + drawPoisson(mean / 2, random)
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count++
  return count
}
