/**
 * Learns for one term of the leader, step by step: reads the executions after the cursor, learns from them, stores what it
 * knows now together with the cursor, and trains when a round is due. What was learned and could not be stored yet is sent
 * again before anything else is learned. If the database does not take it, because the cursor is elsewhere or the term is
 * over, all that is in memory is thrown away and loaded anew.
 */

import {
  type AccuracyValues,
  type ExecutionRow,
  readExecutions,
  storeLearned,
} from '../../db/queries/learning.ts'
import { rollBackModel, storeChallenger } from '../../db/queries/models.ts'
import type { Query, Run } from '../../db/query.ts'
import { serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { packOrgMemory } from '../../functions/prediction/model/org-memory.ts'
import { packMemory } from '../../functions/prediction/model/series-memory.ts'
import type { Logger } from '../logger.ts'
import { toBase64 } from './find-champion.ts'
import type { TaughtExecution } from './learner.ts'
import { type LoadedLearner, loadLearner, toExecution } from './load-learner.ts'
import { toOrgTypeRow, toTypeRow } from './recall.ts'
import type { Decision } from './tournament.ts'
import { orgTypeKey } from './type-statistics.ts'

export type TermLearner = {
  /** Answers the milliseconds until the next. */
  step(): Promise<number>
  dispose(): void
}

const BATCH = 2_000
/** Other series are recalled when they run again. Of one 5 kB are kept at hand. */
const SERIES_AT_HAND = 10_000
const SECOND = 1_000
/** While there is more to learn from, others have the database in between. */
const PAUSE_MS = 20

/** Points of the learning curve are so far apart; but the first that is over so many executions comes at once. */
const POINT_MS = 3_600 * SECOND
const ENOUGH = 200

type Unsaved = { query: Query<unknown>; onSaved: () => void }

export const createTermLearner = (options: {
  run: Run
  term: string
  logger: Logger
  /** Whether a new series may start from other organisations' runs of its type. */
  sharesEstimates: boolean
}): TermLearner => {
  const { run, term, logger } = options
  let loaded: LoadedLearner | undefined
  let isOver = false
  let unsaved: Unsaved[] = []

  const step = async (): Promise<number> => {
    if (!isOver) loaded ??= await loadLearner(options)
    isOver = loaded === undefined
    if (!loaded || !(await save())) return SECOND
    if (loaded.learner.isRoundDue()) {
      unsaved = think(loaded, holdRound)
      await save()
      return PAUSE_MS
    }
    const rows = await run(readExecutions(loaded.cursor, BATCH))
    if (rows.length === 0) return SECOND
    await loaded.recall.prepare(loaded.learner, rows)
    unsaved = think(loaded, (known) => [learnFrom(known, rows)])
    if (await save()) loaded.learner.trim(SERIES_AT_HAND)
    return rows.length >= BATCH || loaded?.learner.isRoundDue() ? PAUSE_MS : SECOND
  }

  /** What was learned by half must not be learned again. */
  const think = (known: LoadedLearner, work: (known: LoadedLearner) => Unsaved[]): Unsaved[] => {
    try {
      return work(known)
    } catch (error) {
      dispose()
      throw error
    }
  }

  /** False: the database knows better. */
  const save = async (): Promise<boolean> => {
    for (let next = unsaved[0]; next; next = unsaved[0]) {
      const rows = await run(next.query)
      if (rows.length === 0) {
        dispose()
        return false
      }
      unsaved.shift()
      next.onSaved()
    }
    return true
  }

  const learnFrom = (known: LoadedLearner, rows: readonly ExecutionRow[]): Unsaved => {
    const { learner } = known
    const from = known.cursor
    const last = rows.at(-1) as ExecutionRow
    const executions = rows.flatMap((row) => toExecution(row) ?? [])
    for (const execution of executions) {
      learner.learn(execution)
      const { sample, censored, log } = execution
      if (sample) known.learned++
      if (sample && !censored) known.accuracy.add(sample, log)
    }
    learner.settle()
    for (const { source, outcome } of rows) {
      if (source && (outcome === 'completed' || outcome === 'timed_out'))
        known.bySource[source] = (known.bySource[source] ?? 0) + 1
    }
    known.cursor = { xid: last.xid, id: last.id }
    const accuracy = known.accuracy.read()
    const isPoint = accuracy !== undefined && isPointDue(known, accuracy)
    if (isPoint) notePoint(known, accuracy)
    const query = storeLearned({
      term,
      from,
      to: known.cursor,
      learned: known.learned,
      bySource: known.bySource,
      accuracy,
      isPoint,
      ...whatChanged(known, executions),
    })
    return { query, onSaved: () => logger.debug('learned', { executions: executions.length }) }
  }

  const holdRound = (known: LoadedLearner): Unsaved[] =>
    known.learner.round().map((decision) => settleDecision(known, decision))

  const settleDecision = (
    known: LoadedLearner,
    { kind, version, against, comparison }: Decision,
  ): Unsaved => {
    const evaluation = { ...comparison, against, kind }
    const told = { version: version.version, ...evaluation }
    if (kind === 'rolled_back') {
      const query = rollBackModel({ term, version: version.version, against, evaluation })
      return { query, onSaved: () => logger.warn('model rolled back', told) }
    }
    const promoted = kind === 'promoted'
    const accuracy = promoted ? known.accuracy.read() : undefined
    if (accuracy) notePoint(known, accuracy)
    const query = storeChallenger({
      term,
      version: version.version,
      against,
      evaluation,
      promoted,
      trainedOn: known.learnedBefore + version.trainedOn,
      onlyOrg: version.onlyOrg,
      weights: promoted ? toBase64(serializeWeights(version.weights)) : null,
      accuracy,
    })
    return { query, onSaved: () => logger[promoted ? 'info' : 'debug'](`model ${kind}`, told) }
  }

  const dispose = (): void => {
    loaded?.learner.dispose()
    loaded = undefined
    unsaved = []
  }

  return { step, dispose }
}

const isPointDue = ({ point }: LoadedLearner, { executions }: AccuracyValues): boolean =>
  (executions >= ENOUGH && (point?.executions ?? 0) < ENOUGH) ||
  (point !== undefined && performance.now() - point.atMs > POINT_MS)

const notePoint = (known: LoadedLearner, { executions }: AccuracyValues): void => {
  known.point = { atMs: performance.now(), executions }
}

/** The rows of the series and types that have learned. */
const whatChanged = ({ learner }: LoadedLearner, executions: readonly TaughtExecution[]) => {
  const { types } = learner
  const series = new Set(executions.map(({ series }) => series))
  const observed = executions.filter(({ sample, censored }) => sample && !censored)
  const orgTypes = new Map(observed.map(({ org, type }) => [orgTypeKey(org, type), { org, type }]))
  const orgs = new Set(observed.map(({ org }) => org))
  const typeNames = new Set(observed.map(({ type }) => type))
  return {
    series: [...series].map((id) => ({ id, memory: toBase64(packMemory(learner.memory(id))) })),
    orgs: [...orgs].map((id) => ({ id, memory: toBase64(packOrgMemory(learner.orgMemory(id))) })),
    types: [...typeNames].flatMap((type) => {
      const known = types.sharedType(type)
      return known ? [toTypeRow(type, known)] : []
    }),
    orgTypes: [...orgTypes.values()].flatMap(({ org, type }) => {
      const known = types.orgType(org, type)
      return known ? [toOrgTypeRow(org, type, known)] : []
    }),
  }
}
