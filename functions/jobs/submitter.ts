/**
 * Commits submissions in groups. A statement is sent at once if a lane is free; what arrives while all lanes are busy
 * waits and goes together in the next one. So a lone job is not delayed, and many cost few round trips and few commits.
 * Each is acknowledged after its own commit.
 *
 * On workerd the members of a group are requests of one isolate, and I/O belongs to the request that started it. So
 * nobody works for others for long: the one whose turn it is sends one statement, for itself and all that wait, and
 * passes the turn to the first that waits then. A promise that another request resolves wakes its owner in its own
 * context (the flag handle_cross_request_promise_resolution, part of our compatibility date): 200 requests at once were
 * 6 to 11 statements, none hung, also while clients hung up. `hold` (`waitUntil`) keeps a request alive whose client
 * does. Should the runtime end one all the same, the others lose patience and help themselves.
 */
import { JOBS_READY } from '../../db/channels.ts'
import { submitLoneJob } from '../../db/queries/lone-submission.ts'
import { notify } from '../../db/queries/notifications.ts'
import type { Member } from '../../db/queries/scope.ts'
import {
  findSubmitted,
  isChargeable,
  isPredicted,
  readSubmitted,
  type Submission,
  type SubmissionRow,
  submitJobs,
  withoutPredictions,
} from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
import { PATIENCE_MS } from '../../db/rules/timeouts.ts'
import { afterCommit } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { isRefusal, sqlstateOf } from '../transient-error.ts'
import { createAnnouncer } from './announcer.ts'
import {
  distinctMembers,
  type Entry,
  identityOf,
  isNotAdmitted,
  keysOf,
  newEntry,
  type OwnSubmission,
  settle,
  unannouncedTypes,
} from './submission-group.ts'

export type Submitter = {
  /** Resolves with the rows of this submission once it is committed or refused. No row: the member may not submit. */
  submit(submission: OwnSubmission, hold?: Hold): Promise<SubmissionRow[]>
  /** Tells workers of jobs that were submitted in another way. */
  announce(types: readonly string[], hold: Hold): void
}

const MAX_JOBS = 500
const MAX_BYTES = 1024 * 1024
/** Remembered as existing. */
const MAX_SERIES = 10_000

/** Submitters wait longer for an answer than the leader of a group waits for the database. */
const PATIENCE = { turnMs: 5_000, answerMs: PATIENCE_MS + 5_000 }

export const createSubmitter = (options: {
  run: Run
  /** Runs a statement for these members; for those whom the database does not let in there are no rows. */
  runAs?: (members: readonly Member[]) => Run
  /** Statements in flight: with one, the groups are as large as they can be. */
  lanes?: number
  /** How long to wait for a turn before taking it, and for an answer to what another has sent before asking again. */
  patience?: { turnMs: number; answerMs: number }
  onError?: (error: unknown) => void
  /** Called when the database rejected a submission with its predictions and accepted it without them. */
  onRefusedPrediction?: (error: unknown, hold: Hold) => void
}): Submitter => {
  const { run, runAs = () => run, lanes = 1, patience = PATIENCE, onError = () => {} } = options
  const { onRefusedPrediction = () => {} } = options
  const announcer = createAnnouncer((types) => run(notify(JOBS_READY, types)), onError)
  const knownSeries = new Set<string>()
  let waiting: Entry[] = []
  let busy = 0

  const submit = async (submission: OwnSubmission, hold: Hold): Promise<SubmissionRow[]> => {
    const entry = newEntry(submission)
    const { turn, rows } = entry
    if (busy < lanes) {
      busy++
      await lead(entry, hold)
      return rows.promise
    }
    waiting.push(entry)
    await within(patience.turnMs, Promise.race([turn.promise, rows.promise]))
    if (!entry.sent) await lead(entry, hold)
    await within(patience.answerMs, rows.promise)
    return entry.settled ? rows.promise : afterCommit(sendAgain(entry, hold))
  }

  const lead = async (own: Entry, hold: Hold): Promise<void> => {
    await othersMayJoin()
    // Took a turn that it thought lost, and meanwhile its owner has sent this one too.
    if (own.sent) return
    await commit(takeGroup(own), hold)
    const next = waiting.shift()
    if (next) next.turn.resolve()
    // A turn that was taken for lost and was not is given back twice.
    else busy = Math.max(0, busy - 1)
  }

  const takeGroup = (own: Entry): Entry[] => {
    const group = [own]
    const keys = new Set(keysOf(own))
    let { bytes } = own
    let jobs = own.submission.jobs.length
    for (const entry of waiting) {
      // Of two with the same key the second waits for what becomes of the first.
      if (entry === own || keysOf(entry).some((key) => keys.has(key))) continue
      bytes += entry.bytes
      jobs += entry.submission.jobs.length
      if (jobs > MAX_JOBS || bytes > MAX_BYTES) break
      for (const key of keysOf(entry)) keys.add(key)
      group.push(entry)
    }
    for (const entry of group) entry.sent = true
    waiting = waiting.filter(({ sent }) => !sent)
    return group
  }

  /**
   * The short ways first: a lone job of a series that was seen before, then jobs of one organisation that fit its quotas.
   * What they do not answer is sent the long way, which says why.
   */
  const send = async (group: readonly Entry[]): Promise<SubmissionRow[]> => {
    const submissions = group.map(({ submission }) => submission)
    const ask = runAs(distinctMembers(group))
    const lone = findLoneJob(submissions)
    const isKnown = lone !== undefined && knownSeries.has(lone.series)
    const short = isKnown
      ? submitLoneJob(lone.orgId, lone.userId, lone.job)
      : isChargeable(submissions) && submitJobs(submissions, 'charge')
    const rows = short ? readSubmitted(submissions, await ask(short)) : []
    if (rows.length > 0) {
      if (lone) remember(lone.series)
      return rows
    }
    if (lone) knownSeries.delete(lone.series)
    return readSubmitted(submissions, await ask(submitJobs(submissions)))
  }

  /**
   * A prediction must never fail a submission: if Postgres rejects the submission, it is sent once more
   * without its predictions.
   */
  const sendAlone = async (entry: Entry, hold: Hold): Promise<SubmissionRow[]> => {
    try {
      return await send([entry])
    } catch (error) {
      if (!isRefusal(error) || !isPredicted(entry.submission)) throw error
      entry.submission = withoutPredictions(entry.submission)
      const rows = await send([entry])
      onRefusedPrediction(error, hold)
      return rows
    }
  }

  const remember = (series: string): void => {
    if (knownSeries.size === MAX_SERIES) knownSeries.clear()
    knownSeries.add(series)
  }

  /** What Postgres refuses is halved until the one that it refuses stands alone: it takes no other with it. */
  const commit = async (group: readonly Entry[], hold: Hold): Promise<void> => {
    const [first] = group
    try {
      const rows = first && group.length === 1 ? await sendAlone(first, hold) : await send(group)
      await settleGroup(group, rows, hold)
    } catch (error) {
      if (group.length > 1 && isRefusal(error)) {
        const half = Math.ceil(group.length / 2)
        await commit(group.slice(0, half), hold)
        await commit(group.slice(half), hold)
      } else for (const entry of group) settle(entry, ({ reject }) => reject(error))
    }
  }

  /**
   * Who is over a quota, or used a key twice, has kept the others from being stored: they go again without them. Who has
   * no answer may only have been in one organisation with somebody who is not let in: each member goes again alone.
   */
  const settleGroup = async (group: readonly Entry[], rows: SubmissionRow[], hold: Hold): Promise<void> => {
    const bySubmission = Map.groupBy(rows, (row) => row.submission)
    const answered = group.map((entry, i) => ({ entry, rows: bySubmission.get(i + 1) ?? [] }))
    const held = rows.some(isNotAdmitted)
    const isOpen = ({ rows: own }: (typeof answered)[number]): boolean =>
      held ? !own.some(isNotAdmitted) : own.length === 0 && distinctMembers(group).length > 1
    for (const { entry, rows: own } of answered.filter((one) => !isOpen(one))) {
      settle(entry, ({ resolve }) => resolve(own))
    }
    const types = unannouncedTypes(group, rows)
    if (types.length > 0) hold(announcer.announce(types))
    const open = answered.filter(isOpen).map(({ entry }) => entry)
    const groups = held ? [open] : [...Map.groupBy(open, identityOf).values()]
    for (const again of groups) if (again.length > 0) await commit(again, hold)
  }

  /** Perhaps it was committed after all. The ids are the same: it is found then, and not committed twice. */
  const sendAgain = async (entry: Entry, hold: Hold): Promise<SubmissionRow[]> => {
    const { orgId, jobs } = entry.submission
    const find = () =>
      runAs(distinctMembers([entry]))(
        findSubmitted(
          orgId,
          jobs.map(({ id }) => id),
        ),
      )
    const found = await find()
    if (found.length > 0) return found
    try {
      return await sendAlone(entry, hold)
    } catch (error) {
      if (sqlstateOf(error) !== UNIQUE_VIOLATION) throw error
      return find()
    }
  }

  return {
    announce: (types, hold) => {
      if (types.length > 0) hold(announcer.announce(types))
    },
    submit: (submission, hold = () => {}) => {
      const work = submit(submission, hold)
      hold(work.catch(() => {}))
      return work
    },
  }
}

/**
 * Whoever has just been answered may have the next submission ready. Some rounds of the microtask queue, a few
 * microseconds, let it join: else every second group is that of the one who came first.
 */
const othersMayJoin = async (): Promise<void> => {
  for (let round = 0; round < 64; round++) await undefined
}

const findLoneJob = (submissions: readonly Submission[]) => {
  const [only] = submissions
  const [job] = only?.jobs ?? []
  if (!only || !job || submissions.length > 1 || only.jobs.length > 1 || !isChargeable(submissions))
    return undefined
  const { orgId, userId } = only
  if (userId === null || job.callback_url !== null || job.triggered_by !== null) return undefined
  return { orgId, userId, job, series: `${orgId} ${job.type} ${job.name}` }
}

/** Until the promise is settled, either way, or the time is up. */
const within = async (ms: number, promise: Promise<unknown>): Promise<void> => {
  const timeUp = Promise.withResolvers<void>()
  const timer = setTimeout(timeUp.resolve, ms)
  await Promise.race([promise.catch(() => {}), timeUp.promise])
  clearTimeout(timer)
}

const UNIQUE_VIOLATION = '23505'
