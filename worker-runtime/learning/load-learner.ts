import {
  type Cursor,
  type ExecutionRow,
  forgetTypes,
  getLearningState,
  type LearningStateRow,
  recallExecutions,
  recallTypes,
} from '../../db/queries/learning.ts'
import type { Run } from '../../db/query.ts'
import { logOf } from '../../db/rules/estimate.ts'
import { unpackSample } from '../../functions/prediction/model/sample.ts'
import type { Logger } from '../logger.ts'
import { type AccuracyWindow, createAccuracyWindow } from './accuracy-window.ts'
import { findChampion, fromBase64, SEED } from './find-champion.ts'
import { createLearner, type Learner, type TaughtExecution } from './learner.ts'
import { createRecall, type Recall, toTypeEstimate } from './recall.ts'

/** Executions that are trained on again in a new term: those with a sample among so many pages, read within so long. */
const REPLAYED = 20_000
const PAGE = 2_000
const PAGES = 50
const REPLAY_MS = 5_000

export type LoadedLearner = {
  learner: Learner
  recall: Recall
  accuracy: AccuracyWindow
  cursor: Cursor
  learned: number
  bySource: Record<string, number>
  /** Executions that were learned from before those which the learner has been shown again. */
  learnedBefore: number
  /** The newest point of the learning curve: when it was made, by `performance.now()`, and over how many executions. */
  point: { atMs: number; executions: number } | undefined
}

/** What a new term begins with: what was stored, and the newest executions to train on again. Undefined: it is over. */
export const loadLearner = async (options: {
  run: Run
  term: string
  logger: Logger
  sharesEstimates: boolean
}): Promise<LoadedLearner | undefined> => {
  const { run, term, sharesEstimates } = options
  const [state] = await run(getLearningState(term))
  if (!state) return undefined
  const { xid, id, learned, newest_version: newestVersion } = state
  const champions = await findChampion({ ...options, newestVersion })
  if (!champions) return undefined
  const recall = createRecall(run)
  const learner = createLearner({
    seed: SEED + Number(term),
    ...champions,
    newestVersion,
    sharesEstimates,
    recall: recall.series,
    recallOrg: recall.org,
    recallOrgType: recall.orgType,
  })
  const accuracy = createAccuracyWindow()
  if (!sharesEstimates) await run(forgetTypes(term))
  const replayed = await recallAll(run, learner, { xid, id }).catch((error: unknown) => {
    learner.dispose()
    throw error
  })
  for (const { sample, censored, log } of replayed) if (sample && !censored) accuracy.add(sample, log)
  return {
    learner,
    recall,
    accuracy,
    cursor: { xid, id },
    learned,
    bySource: state.by_source,
    learnedBefore: Math.max(0, learned - replayed.length),
    point: toPoint(state),
  }
}

const toPoint = ({ point_age_s: ageS, point_executions: executions }: LearningStateRow) =>
  ageS === null || executions === null ? undefined : { atMs: performance.now() - 1000 * ageS, executions }

/** What can be recalled of earlier terms, which is also answered. */
const recallAll = async (run: Run, learner: Learner, upTo: Cursor): Promise<TaughtExecution[]> => {
  const replayed = await readReplayed(run, upTo)
  learner.replay(replayed)
  for (const row of await run(recallTypes())) learner.types.restore(row.type, toTypeEstimate(row))
  return replayed
}

/** The newest executions with a sample, oldest first. */
const readReplayed = async (run: Run, upTo: Cursor): Promise<TaughtExecution[]> => {
  const giveUpAtMs = performance.now() + REPLAY_MS
  const found: TaughtExecution[] = []
  let before = upTo
  for (let page = 0; page < PAGES && found.length < REPLAYED && performance.now() < giveUpAtMs; page++) {
    const rows = await run(recallExecutions(before, PAGE))
    found.push(...rows.flatMap((row) => toExecution(row) ?? []).filter(({ sample }) => sample))
    const last = rows.at(-1)
    // Fewer were found than asked for: these were the oldest.
    if (!last || rows.length < PAGE) break
    before = { xid: last.xid, id: String(BigInt(last.id) - 1n) }
  }
  return found.reverse()
}

/** Undefined: it teaches nothing, because it did not end by itself, or its series is forgotten. */
export const toExecution = (row: ExecutionRow): TaughtExecution | undefined => {
  const censored = row.outcome === 'timed_out'
  if (row.type === null || (row.outcome !== 'completed' && !censored)) return undefined
  return {
    series: row.series_id,
    org: row.org_id,
    type: row.type,
    log: logOf(row.ran_ms),
    censored,
    endedAtS: row.ended_at_s,
    sample: row.sample === null ? undefined : unpackSample(fromBase64(row.sample)),
  }
}
