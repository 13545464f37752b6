import type { Predictor } from '../../functions/prediction/lstm/predictor.ts'
import { calibrate } from '../../functions/prediction/model/calibration.ts'
import { hourOf } from '../../functions/prediction/model/encoder.ts'
import { judgeExperts, maturityOf, noErrors } from '../../functions/prediction/model/mixture.ts'
import { emptyOrgMemory, type OrgMemory } from '../../functions/prediction/model/org-memory.ts'
import type { Sample } from '../../functions/prediction/model/sample.ts'
import {
  emptyMemory,
  rememberRun,
  type SeriesMemory,
} from '../../functions/prediction/model/series-memory.ts'
import type { OrgTypeEstimate } from '../../functions/prediction/model/series-view.ts'
import { createRecallMap } from './recall-map.ts'
import { createStateKeeper } from './state-keeper.ts'
import { createTournament, type Decision, type Tournament, type Version } from './tournament.ts'
import { createTrainingMemory } from './training-memory.ts'
import { createTypeStatistics, type TypeStatistics } from './type-statistics.ts'

/** An execution that has ended, with what was predicted from. */
export type TaughtExecution = {
  series: string
  org: string
  type: string
  log: number
  /** It was ended by its timeout: it would have run at least as long. */
  censored: boolean
  endedAtS: number
  /** Undefined: of those that look alike others speak for it. */
  sample: Sample | undefined
}

export type Learner = {
  readonly types: TypeStatistics
  memory(series: string): SeriesMemory
  orgMemory(org: string): OrgMemory
  /** Whether they need not be recalled. */
  isAtHand(series: string): boolean
  isOrgAtHand(org: string): boolean
  learn(execution: TaughtExecution): void
  /** Executions that were learned from before, oldest first: to train on again. What is remembered of them stays as it is. */
  replay(executions: readonly TaughtExecution[]): void
  /** Runs what was learned since through the network, so that each series' state is that of its newest execution. */
  settle(): void
  predictor(): Predictor
  champion(): Version
  /** So much has been learned that another round of training is worth it. */
  isRoundDue(): boolean
  /** Judges the versions on what none of them was trained on, then trains on it. */
  round(): Decision[]
  /** Lets go of the series, organisations and types that were used longest ago. They are recalled as they were stored. */
  trim(most: number): void
  dispose(): void
}

export const createLearner = (options: {
  seed: number
  champion?: Version | undefined
  /** The champion before, which may win its place back. */
  former?: Version | undefined
  /** Later versions have higher numbers. */
  newestVersion?: number | undefined
  /** What is known of a series from before. */
  recall?: (series: string) => SeriesMemory | undefined
  recallOrg?: (org: string) => OrgMemory | undefined
  /** And of an organisation's jobs of a type, by `orgTypeKey`. */
  recallOrgType?: (key: string) => OrgTypeEstimate | undefined
  /** Whether a new series may start from other organisations' runs of its type. */
  sharesEstimates?: boolean | undefined
}): Learner => {
  const { sharesEstimates = false } = options
  const types = createTypeStatistics({ recall: options.recallOrgType, sharesEstimates })
  const orgs = createRecallMap((org) => options.recallOrg?.(org))
  const memories = createRecallMap((series) => options.recall?.(series))
  const tournament: Tournament = createTournament(options)
  const training = createTrainingMemory(tournament.shape)
  const keeper = createStateKeeper(() => tournament.predictor())

  const memory = (series: string): SeriesMemory => {
    const known = memories.get(series)
    if (known) return known
    const fresh = emptyMemory()
    memories.set(series, fresh)
    return fresh
  }

  const orgMemory = (org: string): OrgMemory => {
    const known = orgs.get(org)
    if (known) return known
    const fresh = emptyOrgMemory()
    orgs.set(org, fresh)
    return fresh
  }

  const learn = (execution: TaughtExecution): void => {
    const { log, censored, endedAtS, sample } = execution
    const own = memory(execution.series)
    if (!censored) own.seen++
    if (!sample) return
    teach(own, execution, sample)
    if (censored) return
    judge(own, orgMemory(execution.org), sample, log)
    const { sizeLog, timeoutLog, cpuLog, gapLog, submittedAtS } = sample
    const run = { log, sizeLog, timeoutLog, cpuLog, gapLog, hour: hourOf(submittedAtS) }
    types.observe({ ...execution, run, baseLog: sample.baseLog })
    rememberRun(own, run, endedAtS)
  }

  const teach = (
    own: SeriesMemory,
    { org, series, log, censored }: TaughtExecution,
    sample: Sample,
  ): void => {
    const lesson = {
      org,
      series,
      vintage: sample.runs,
      x: sample.x,
      target: log - sample.baseLog,
      censored,
      state: own.state,
    }
    keeper.add(own, lesson)
    training.add(lesson)
  }

  const replay: Learner['replay'] = (executions) => {
    // The memories know these already: their states are those after the newest.
    const anew = new Map<string, SeriesMemory>()
    for (const execution of executions) {
      const { series, sample } = execution
      if (!sample) continue
      const own = anew.get(series) ?? emptyMemory()
      anew.set(series, own)
      teach(own, execution, sample)
    }
    keeper.settle()
    tournament.begin(training)
  }

  const judge = (own: SeriesMemory, org: OrgMemory, sample: Sample, log: number): void => {
    const staleness = own.seen - sample.seen
    if (own.errors.length === 0) Object.assign(own, noErrors())
    judgeExperts(own, org.general[maturityOf(sample.runs)] ?? noErrors(), sample.advice, log, staleness)
    calibrate(org.stretch, sample.spreadLog, log - sample.ownP50Log)
  }

  return {
    types,
    memory,
    orgMemory,
    isAtHand: memories.has,
    isOrgAtHand: orgs.has,
    learn,
    replay,
    settle: keeper.settle,
    predictor: tournament.predictor,
    champion: tournament.champion,
    isRoundDue: () => tournament.isRoundDue(training),
    round: () => {
      keeper.settle()
      return tournament.round(training)
    },
    trim: (most) => {
      memories.trim(most)
      orgs.trim(most)
      types.trim(most)
    },
    dispose: tournament.dispose,
  }
}
