/**
 * Champion and challenger. The champion predicts; the challenger is the newest that was trained. Before a round of training
 * both answer for the executions that ended since the last one, which neither has been trained on: the challenger is promoted
 * only if it is better there beyond doubt. Then it is trained on. The champion before is kept for a while and can win its
 * place back in the same way.
 */
import { INPUTS } from '../../db/learning/encoder.ts'
import { createPredictor, type Predictor } from '../../functions/prediction/lstm/predictor.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { createTrainer, type Trainer } from '../../functions/prediction/lstm/trainer.ts'
import { createWeights, DEFAULT_HIDDEN, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { comparePaired, type Comparison } from './compare-paired.ts'
import type { Lesson, TrainingMemory } from './training-memory.ts'

export type Version = { version: number; weights: Weights; trainedOn: number }

export type Decision = {
  kind: 'promoted' | 'kept' | 'rolled-back'
  version: Version
  against: number
  comparison: Comparison
}

export type Tournament = {
  readonly shape: Weights['shape']
  champion(): Version
  predictor(): Predictor
  isRoundDue(memory: TrainingMemory): boolean
  round(memory: TrainingMemory): Decision[]
  dispose(): void
}

/** Steps of a round: with windows of 16 in batches of 64, each execution is seen some thirty times. */
const STEPS = 40
const LEARNING_RATE = 2e-3
/** A round after so many executions, and sooner while there are few. */
const ROUND = 1_000
const FIRST_ROUND = 100
/** Beyond doubt: of random differences one in forty is as large. */
const Z_NEEDED = 2

export const createTournament = (options: { seed: number; champion?: Version | undefined }): Tournament => {
  const shape = { inputs: INPUTS, hidden: DEFAULT_HIDDEN, heads: 2 }
  const random = createRandom(options.seed)
  let champion = options.champion ?? { version: 1, weights: createWeights(shape, options.seed), trainedOn: 0 }
  let predictor = createPredictor(champion.weights)
  let former: Version | undefined
  let challenger: Version | undefined
  let trainer: Trainer = newTrainer(champion.weights)
  let newestVersion = champion.version
  let learned = 0
  let judgedAt = 0

  const promote = (version: Version): void => {
    champion = version
    predictor.dispose()
    predictor = createPredictor(version.weights)
  }

  const judge = (memory: TrainingMemory): Decision[] => {
    const unseen = memory.newest(memory.added() - judgedAt).filter(({ censored }) => !censored)
    if (unseen.length === 0) return []
    const decisions: Decision[] = []
    const errors = errorsOf(predictor, unseen)
    if (former) {
      const comparison = comparePaired(errors, errorsOfWeights(former.weights, unseen))
      if (comparison.z > Z_NEEDED) {
        decisions.push({ kind: 'rolled-back', version: champion, against: former.version, comparison })
        promote(former)
        former = undefined
        trainer = newTrainer(champion.weights)
        challenger = undefined
        return decisions
      }
    }
    if (!challenger) return decisions
    const comparison = comparePaired(errors, errorsOfWeights(challenger.weights, unseen))
    const isBetter = comparison.z > Z_NEEDED
    decisions.push({ kind: isBetter ? 'promoted' : 'kept', version: challenger, against: champion.version, comparison })
    if (isBetter) {
      former = champion
      promote(challenger)
    }
    return decisions
  }

  const train = (memory: TrainingMemory): void => {
    for (let n = 0; n < STEPS; n++) trainer.step(memory.batch(random))
    newestVersion++
    challenger = { version: newestVersion, weights: trainer.weights(), trainedOn: learned }
  }

  return {
    shape,
    champion: () => champion,
    predictor: () => predictor,
    isRoundDue: (memory) => {
      const fresh = memory.added() - judgedAt
      return fresh >= Math.min(ROUND, Math.max(FIRST_ROUND, judgedAt))
    },
    round: (memory) => {
      const decisions = judge(memory)
      judgedAt = memory.added()
      learned = memory.added()
      train(memory)
      return decisions
    },
    dispose: () => predictor.dispose(),
  }
}

const newTrainer = (weights: Weights): Trainer => createTrainer({ weights, learningRate: LEARNING_RATE })

const errorsOfWeights = (weights: Weights, lessons: readonly Lesson[]): number[] => {
  const predictor = createPredictor(weights)
  try {
    return errorsOf(predictor, lessons)
  } finally {
    predictor.dispose()
  }
}

const errorsOf = (predictor: Predictor, lessons: readonly Lesson[]): number[] => {
  const inputs = lessons[0]?.x.length ?? 0
  const x = new Float32Array(lessons.length * inputs)
  const states = new Float32Array(lessons.length * predictor.width)
  for (const [n, lesson] of lessons.entries()) {
    x.set(lesson.x, n * inputs)
    states.set(lesson.state, n * predictor.width)
  }
  const { outputs } = predictor.step(x, states)
  return lessons.map(({ target }, n) => Math.abs((outputs[2 * n] ?? 0) - target))
}
