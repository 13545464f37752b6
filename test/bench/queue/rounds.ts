import type { Arena } from './arena.ts'
import type { Contender } from './contender.ts'
import { type Measurements, medianOf, type Sample, type Standings, summarise } from './metrics.ts'
import type { Sizes } from './sizes.ts'
import { createSteps, type Step } from './steps.ts'

export type Rounds = { medians: Standings; rounds: Record<string, Measurements[]> }

/**
 * Interleaved: in each round all steps, in each step all contenders. Those of a row are measured right after each
 * other, and the rounds of a row minutes apart, so that a machine that is busy for a while spoils one of them. Each step
 * begins with another contender, because whoever comes first or last may have an advantage.
 */
export const runRounds = async (
  arena: Arena,
  contenders: readonly Contender[],
  options: { sizes: Sizes; say: (line: string) => void },
): Promise<Rounds> => {
  const { sizes, say } = options
  const rounds: Record<string, Measurements[]> = Object.fromEntries(contenders.map(({ key }) => [key, []]))
  for (let round = 0; round < sizes.rounds; round++) {
    const samples = new Map<Contender, Sample[]>(contenders.map((contender) => [contender, []]))
    for (const [number, step] of createSteps(arena, sizes).entries()) {
      for await (const [contender, sample] of step.run(rotate(contenders, round + number))) {
        samples.get(contender)?.push(sample)
        if (Object.keys(sample).length > 0) say(progressLine(step, round, contender, summarise([sample])))
      }
    }
    for (const [{ key }, ofRound] of samples) rounds[key]?.push(summarise(ofRound))
  }
  const medians = Object.fromEntries(contenders.map(({ key }) => [key, medianOf(rounds[key] ?? [])]))
  return { medians, rounds }
}

export const rotate = <T>(values: readonly T[], by: number): T[] => {
  const first = by % values.length
  return [...values.slice(first), ...values.slice(0, first)]
}

const progressLine = (step: Step, round: number, { name }: Contender, measured: Measurements): string => {
  const values = Object.entries(measured).map(([key, value]) => `${key} ${Number(value?.toPrecision(4))}`)
  return `${step.name}, round ${round + 1}: ${name}: ${values.join(', ')}`
}
