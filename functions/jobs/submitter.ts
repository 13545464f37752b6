/**
 * Commits submissions in groups. A statement is sent at once if a lane is free; submissions that arrive while all lanes
 * are busy wait and go together in the next one. So a single job is not delayed, and many jobs take few round trips and
 * commits. Each submission is acknowledged after its own commit.
 *
 * On workerd the members of a group are requests of one isolate, and I/O belongs to the request that started it. So no
 * request works for others for long: the one whose turn it is sends one statement, for itself and all that wait, and
 * then passes the turn to the first that is waiting. A promise that another request resolves wakes its owner in its own
 * context (the flag handle_cross_request_promise_resolution, part of our compatibility date): 200 concurrent requests
 * took 6 to 11 statements, and none hung, even while clients disconnected. `hold` (`waitUntil`) keeps a request alive
 * whose client disconnects. If the runtime ends one anyway, the others time out and send their submissions themselves.
 */
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import type { Member } from '../../db/queries/scope.ts'
import type { Run } from '../../db/query.ts'
import { type InvalidValue, type SubmissionRow, submitJobs } from '../../db/queue/submit.ts'
import { findSubmitted } from '../../db/queue/submitted.ts'
import { PATIENCE_MS } from '../../db/rules/timeouts.ts'
import { afterCommit } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { sqlstateOf } from '../transient-error.ts'
import { createAnnouncer } from './announcer.ts'
import {
  bytesOf,
  type Entry,
  isBusy,
  keysOf,
  newEntry,
  type OwnSubmission,
  readyTypes,
} from './submission-group.ts'
import { settle, untilWoken } from './waiting.ts'

export type Submitter = {
  /** Resolves with the rows of this submission once it is committed or refused. */
  submit(submission: OwnSubmission, hold?: Hold): Promise<SubmissionRow[]>
  /** Notifies workers of jobs that were submitted in another way. */
  announce(types: readonly string[], hold: Hold): void
}

const MAX_JOBS = 500
const MAX_BYTES = 1024 * 1024

/** Members of a group wait longer for an answer than the sender of the group waits for the database. */
const PATIENCE = { turnMs: 5_000, answerMs: PATIENCE_MS + 5_000 }

export const createSubmitter = (options: {
  run: Run
  /** Runs a statement in a transaction that has entered the member's organisation. */
  runAs?: (member: Member) => Run
  /** Maximum number of statements in flight. With one, groups are as large as possible. */
  lanes?: number
  /** How long to wait for a turn before taking it, and for the answer to a group that another request has sent. */
  patience?: { turnMs: number; answerMs: number }
  onError?: (error: unknown) => void
  /** Called when the database has rejected the predictions of a submission and stored it without them. */
  onRefusedPrediction?: (error: unknown, hold: Hold) => void
}): Submitter => {
  const { run, runAs = () => run, lanes = 1, patience = PATIENCE, onError = () => {} } = options
  const { onRefusedPrediction = () => {} } = options
  const announcer = createAnnouncer((types) => run(notify(JOBS_READY, types)), onError)
  let waiting: Entry[] = []
  let busy = 0
  /** Whether the last group had several members, who may be about to submit again. */
  let isCrowded = false

  const submit = (submission: OwnSubmission, hold: Hold = () => {}): Promise<SubmissionRow[]> => {
    const entry = newEntry(submission)
    const work = takeTurn(entry, hold)
    hold(work.catch((error) => settle(entry, ({ reject }) => reject(error))))
    return entry.answer.promise
  }

  const takeTurn = (entry: Entry, hold: Hold): Promise<void> => {
    if (busy < lanes) {
      busy++
      return lead(entry, hold)
    }
    waiting.push(entry)
    return waitForTurn(entry, hold)
  }

  const waitForTurn = async (entry: Entry, hold: Hold): Promise<void> => {
    await untilWoken(entry, patience.turnMs)
    if (!entry.sent) await lead(entry, hold)
    if (!entry.settled) await untilWoken(entry, patience.answerMs)
    if (entry.settled) return
    const rows = afterCommit(sendAgain(entry, hold))
    settle(entry, ({ resolve }) => resolve(rows))
    await rows.catch(() => {})
  }

  const lead = async (own: Entry, hold: Hold): Promise<void> => {
    await othersMayJoin(isCrowded, () => waiting.length)
    // This request took over a turn that it thought was lost, but the owner of the turn has sent its submission.
    if (own.sent) return
    const group = takeGroup(own)
    isCrowded = group.length > 1
    await commit(group, hold)
    const next = waiting.shift()
    if (next) next.wake()
    // A turn that was taken over although it was not lost is returned twice.
    else busy = Math.max(0, busy - 1)
  }

  const takeGroup = (own: Entry): Entry[] => {
    const group = [own]
    own.sent = true
    if (waiting.length === 0) return group
    const keys = new Set(keysOf(own))
    let bytes = bytesOf(own)
    let jobs = own.submission.jobs.length
    for (const entry of waiting) {
      // If two have the same key, the second waits for the result of the first.
      if (entry.sent || keysOf(entry).some((key) => keys.has(key))) continue
      bytes += bytesOf(entry)
      jobs += entry.submission.jobs.length
      if (jobs > MAX_JOBS || bytes > MAX_BYTES) break
      for (const key of keysOf(entry)) keys.add(key)
      group.push(entry)
      entry.sent = true
    }
    waiting = waiting.filter(({ sent }) => !sent)
    return group
  }

  const commit = async (group: readonly Entry[], hold: Hold): Promise<void> => {
    const mark = announcer.mark()
    try {
      const rows = await send(group, hold)
      const rowsOf: SubmissionRow[][] = group.map(() => [])
      for (const row of rows) rowsOf[row.submission - 1]?.push(row)
      const busy = group.filter((entry, i) => {
        const own = rowsOf[i] ?? []
        if (own.some(isBusy)) return true
        answer(entry, own)
        return false
      })
      if (busy.length > 0) commitBusy(busy, hold)
      const { announced, unannounced } = readyTypes(rows)
      announcer.forget(announced, mark)
      if (unannounced.size > 0) hold(announcer.announce(unannounced))
    } catch (error) {
      for (const entry of group) settle(entry, ({ reject }) => reject(error))
    }
  }

  const send = async (group: readonly Entry[], hold: Hold): Promise<SubmissionRow[]> => {
    const submitting = submitJobs(group.map(({ submission }) => submission))
    const { rows, refusedPredictions } = submitting.read(await run(submitting))
    for (const error of refusedPredictions) onRefusedPrediction(error, hold)
    return rows
  }

  /** Another transaction has locked the quotas of these organisations. Each waits in a call of its own. */
  const commitBusy = (busy: readonly Entry[], hold: Hold): void => {
    for (const group of Map.groupBy(busy, ({ submission }) => submission.orgId).values())
      hold(commit(group, hold))
  }

  /** The submission may have been committed after all. Its ids are the same, so it is found and not committed twice. */
  const sendAgain = async (entry: Entry, hold: Hold): Promise<SubmissionRow[]> => {
    const { orgId, jobs } = entry.submission
    const jobIds = jobs.map(({ id }) => id)
    const find = () => runIn(entry)(findSubmitted(orgId, jobIds))
    const found = await find()
    if (found.length > 0) return found
    const rows = await send([entry], hold)
    const invalid = rows.find(isInvalid)
    if (!invalid) return rows
    const error = new RejectedByDatabase(invalid.detail)
    if (sqlstateOf(error) !== UNIQUE_VIOLATION) throw error
    return find()
  }

  const runIn = ({ submission }: Entry): Run => (submission.member ? runAs(submission.member) : run)

  return {
    announce: (types, hold) => {
      if (types.length > 0) hold(announcer.announce(types))
    },
    submit,
  }
}

/**
 * Callers that have just been answered may have their next submissions ready. A few rounds of the microtask queue, some
 * microseconds, let them join; otherwise every second group has only one submission. A single caller is not delayed.
 */
const othersMayJoin = async (isCrowded: boolean, joined: () => number): Promise<void> => {
  for (let round = 0; round < (joined() > 0 ? 64 : isCrowded ? 16 : 2); round++) await undefined
}

/** Postgres rejected a value that all earlier checks accepted. */
class RejectedByDatabase extends Error {
  readonly code: string

  constructor({ code, message }: InvalidValue['detail']) {
    super(message)
    this.name = 'RejectedByDatabase'
    this.code = code
  }
}

const isInvalid = (row: SubmissionRow): row is SubmissionRow & InvalidValue =>
  row.id === null && row.refusal === 'invalid'

const answer = (entry: Entry, rows: SubmissionRow[]): void => {
  const invalid = rows.find(isInvalid)
  settle(entry, ({ resolve, reject }) =>
    invalid ? reject(new RejectedByDatabase(invalid.detail)) : resolve(rows),
  )
}

const UNIQUE_VIOLATION = '23505'
