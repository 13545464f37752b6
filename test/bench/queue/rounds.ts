import { percentile } from '../report.ts'
import type { Arena } from './arena.ts'
import type { Contender } from './contender.ts'
import type { Measurements, MetricKey, Standings } from './metrics.ts'
import type { Sizes } from './sizes.ts'
import { createSteps, pickupOf, type Step } from './steps.ts'

export type Rounds = { medians: Standings; rounds: Record<string, Measurements[]> }

/**
 * Interleaved: in each round all steps, in each step all contenders. Those of a row are measured right after each
 * other, and the rounds of a row minutes apart, so that a machine that is busy for a while spoils one of them.
 */
export const runRounds = async (
  arena: Arena,
  contenders: readonly Contender[],
  options: { sizes: Sizes; say: (line: string) => void },
): Promise<Rounds> => {
  const { sizes, say } = options
  const pickups = new Map<string, number[]>()
  const rounds: Record<string, Measurements[]> = Object.fromEntries(
    contenders.map(({ key }) => [key, Array.from({ length: sizes.rounds }, () => ({}))]),
  )
  for (let round = 0; round < sizes.rounds; round++) {
    for (const step of createSteps(arena, sizes, pickups)) {
      for (const contender of contenders) {
        const measured = await step.run(contender)
        Object.assign(rounds[contender.key]?.[round] ?? {}, measured)
        if (Object.keys(measured).length > 0) say(progressLine(step, round, contender, measured))
      }
    }
  }
  const medians = Object.fromEntries(
    contenders.map(({ key }) => [
      key,
      { ...medianOf(rounds[key] ?? []), ...pickupOf(pickups.get(key) ?? []) },
    ]),
  )
  return { medians, rounds }
}

const medianOf = (rounds: readonly Measurements[]): Measurements => {
  const keys = new Set(rounds.flatMap((round) => Object.keys(round) as MetricKey[]))
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      percentile(
        rounds.flatMap((round) => round[key] ?? []),
        0.5,
      ),
    ]),
  )
}

const progressLine = (step: Step, round: number, { name }: Contender, measured: Measurements): string => {
  const values = Object.entries(measured).map(([key, value]) => `${key} ${Number(value?.toPrecision(4))}`)
  return `${step.name}, round ${round + 1}: ${name}: ${values.join(', ')}`
}
