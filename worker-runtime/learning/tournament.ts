/**
 * Champion and challenger. The champion predicts; the challenger is what training has made of it. Before a round of training
 * both answer for the executions that ended since the last one, which neither has been trained on: the challenger is promoted
 * only if it is better there beyond doubt, and not worse for the organisations that had few of these executions or none. Then
 * it is trained on. The champion before is kept for some rounds and can win its place back in the same way.
 */

import { createPredictor, type Predictor } from '../../functions/prediction/lstm/predictor.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { createTrainer } from '../../functions/prediction/lstm/trainer.ts'
import { createWeights, DEFAULT_HIDDEN, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { createAverage } from './average-weights.ts'
import { type Comparison, createEvidence } from './compare-paired.ts'
import type { Lesson, TrainingMemory } from './training-memory.ts'

export type Version = {
  version: number
  weights: Weights
  trainedOn: number
  /** The organisation whose runs alone it was trained on. Null: several, or none yet. */
  onlyOrg: string | null
}

export type Decision = {
  /** `rejected`: the challenger is not better beyond doubt, and trained on. `rolled_back`: the champion is worse than the one before. */
  kind: 'promoted' | 'rejected' | 'rolled_back'
  version: Version
  /** The version that it was compared with. */
  against: number
  comparison: Comparison
}

export type Tournament = {
  readonly shape: Weights['shape']
  champion(): Version
  predictor(): Predictor
  /** All that is in the memory by now was judged, and trained on, in an earlier term. */
  begin(memory: TrainingMemory): void
  isRoundDue(memory: TrainingMemory): boolean
  round(memory: TrainingMemory): Decision[]
  dispose(): void
}

/** Steps of a round: with 64 windows of up to 16 executions, each execution is seen some forty times. */
const STEPS = 40
/** Thrice that of Kingma & Ba: weights are averaged. On LLNL's trace better than 0.008. */
const LEARNING_RATE = 3e-3
/** A round after so many executions, and sooner while there are few. */
const ROUND = 1_000
const FIRST_ROUND = 100
/** Beyond doubt: of random differences one in forty is as large. */
const Z_NEEDED = 2
/** An organisation objects to a version that is so clearly worse on its own newest executions. */
const Z_OBJECTION = -4
const WITNESSES = 50
/** One in so many may object: so nobody can keep the others from a better network, except where there are fewer. */
const OBJECTORS = 20
/** A former champion may come back within so many rounds. */
const PROBATION = 5

type Training = {
  step(memory: TrainingMemory): void
  weights(): Weights
  onlyOrg(): string | null
}

export const createTournament = (options: {
  seed: number
  champion?: Version | undefined
  former?: Version | undefined
  newestVersion?: number | undefined
}): Tournament => {
  const shape = { inputs: INPUTS, hidden: DEFAULT_HIDDEN, heads: 2 }
  const random = createRandom(options.seed)
  let champion: Version = options.champion ?? {
    version: 1,
    weights: createWeights(shape, options.seed),
    trainedOn: 0,
    onlyOrg: null,
  }
  let predictor = createPredictor(champion.weights)
  let former: { version: Version; rounds: number; evidence: ReturnType<typeof createEvidence> } | undefined =
    options.former && { version: options.former, rounds: 0, evidence: createEvidence() }
  let challenger: Version | undefined
  let evidence = createEvidence()
  let training = trainFrom(champion, random)
  let newestVersion = Math.max(champion.version, options.newestVersion ?? 0)
  let judged = 0
  let judgedBefore = 0

  const crown = (version: Version): void => {
    champion = version
    predictor.dispose()
    predictor = createPredictor(version.weights)
    evidence = createEvidence()
  }

  /** Whether the version would be paid for by organisations that the newest executions say little about. */
  const isHarmful = ({ weights }: Version, memory: TrainingMemory): boolean => {
    const orgs = memory.newestByOrg(WITNESSES)
    if (orgs.length === 1) return false
    const lessons = orgs.flat()
    const before = errorsOf(predictor, lessons)
    const after = errorsOfWeights(weights, lessons)
    const objectors = orgs.filter((own) => {
      const count = own.length
      return (
        createEvidence().add(groupsOf(own), before.splice(0, count), after.splice(0, count)).z < Z_OBJECTION
      )
    })
    return objectors.length > orgs.length / OBJECTORS
  }

  const judge = (unseen: readonly Lesson[], memory: TrainingMemory): Decision[] => {
    const groups = groupsOf(unseen)
    const errors = errorsOf(predictor, unseen)
    const compare = (weights: Weights, known: ReturnType<typeof createEvidence>): Comparison =>
      known.add(groups, errors, errorsOfWeights(weights, unseen))
    if (former) {
      const { version: before } = former
      const comparison = compare(before.weights, former.evidence)
      if (comparison.z > Z_NEEDED && !isHarmful(before, memory)) {
        const decision: Decision = {
          kind: 'rolled_back',
          version: champion,
          against: before.version,
          comparison,
        }
        former = undefined
        challenger = undefined
        crown(before)
        training = trainFrom(before, random)
        return [decision]
      }
      if (++former.rounds === PROBATION) former = undefined
    }
    if (!challenger) return []
    const comparison = compare(challenger.weights, evidence)
    const isBetter = comparison.z > Z_NEEDED && !isHarmful(challenger, memory)
    const kind = isBetter ? 'promoted' : 'rejected'
    const decision: Decision = { kind, version: challenger, against: champion.version, comparison }
    if (kind === 'promoted') {
      former = { version: champion, rounds: 0, evidence: createEvidence() }
      crown(challenger)
    }
    return [decision]
  }

  return {
    shape,
    champion: () => champion,
    predictor: () => predictor,
    begin: (memory) => {
      judgedBefore = memory.added()
    },
    isRoundDue: (memory) => memory.added() - judged >= Math.min(ROUND, Math.max(FIRST_ROUND, judged)),
    round: (memory) => {
      const unseen = memory
        .newest(memory.added() - Math.max(judged, judgedBefore))
        .filter(({ censored }) => !censored)
      const decisions = unseen.length > 0 ? judge(unseen, memory) : []
      judged = memory.added()
      for (let n = 0; n < STEPS; n++) training.step(memory)
      newestVersion++
      challenger = {
        version: newestVersion,
        weights: training.weights(),
        trainedOn: judged,
        onlyOrg: training.onlyOrg(),
      }
      return decisions
    },
    dispose: () => predictor.dispose(),
  }
}

const trainFrom = ({ weights, trainedOn, onlyOrg }: Version, random: () => number): Training => {
  const trainer = createTrainer({ weights, learningRate: LEARNING_RATE })
  const average = createAverage(weights)
  let isUntrained = trainedOn === 0
  return {
    step: (memory) => {
      trainer.step(memory.batch(random))
      average.add(trainer.weights())
      const taughtBy = memory.onlyOrg()
      onlyOrg = isUntrained || taughtBy === onlyOrg ? taughtBy : null
      isUntrained = false
    },
    weights: average.weights,
    onlyOrg: () => onlyOrg,
  }
}

const groupsOf = (lessons: readonly Lesson[]): string[] =>
  lessons.map(({ series, vintage }) => `${series} ${vintage}`)

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
