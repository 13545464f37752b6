/**
 * Callbacks, as a duty of the leader: it reads which jobs have ended, and makes a job for each URL that wants to know.
 * Nothing is added to the statements that end jobs.
 *
 * Most of the time nobody is to be told, and then nothing is written: how far the events have been read is remembered here,
 * and stored only now and then. Another leader reads the last seconds again, which does no harm, because the jobs are
 * submitted in the transaction that moves the stored cursor, from where it was known to be: of two that tell the same
 * event one moves it first, and the other submits nothing.
 */

import { findCallbacks } from '../../db/queries/callback-outbox.ts'
import {
  type EventPosition,
  getCallbackCursor,
  moveCallbackCursor,
  restartCursors,
} from '../../db/queries/event-cursors.ts'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import type { Run } from '../../db/query.ts'
import { type Refusal, type Submission, submitJobs } from '../../db/queue/submit.ts'
import { CALLBACK_TYPE } from '../../db/rules/callbacks.ts'
import type { Database } from '../database.ts'
import type { Duty } from '../duties.ts'
import type { Logger } from '../logger.ts'
import { toSubmissions } from './submissions.ts'

export type CallbackDutyOptions = {
  run: Run
  /** Its commits wait for the disk: what was told must not be told again, under another id, after a crash. */
  transaction: Database['transaction']
  logger: Logger
}

const POLL_MS = 300
/** While nobody is told anything, so much is read again after a change of leaders. */
const STORE_MS = 5_000

/** A body may have 70 KB, and goes to up to 21 URLs: no page is larger than some 20 MB. */
const LIMITS = { events: 1_000, callbacks: 250 }

/** `stored`: where the cursor is; `read`: how far this leader has looked. */
type Place = {
  term: string
  stored: EventPosition
  read: EventPosition
  storedAtMs: number
}

export const createCallbackDuty = ({ run, transaction, logger }: CallbackDutyOptions): Duty => {
  let place: Place | undefined

  const begin = async (term: string): Promise<Place> => {
    const [restarted] = await run(restartCursors(term, ['callbacks']))
    if (restarted) logger.warn('callbacks begin at the present: the database came from another server')
    const [stored] = await run(getCallbackCursor())
    if (!stored) throw new Error('The cursor of callbacks is one row')
    return { term, stored, read: stored, storedAtMs: performance.now() }
  }

  const pass = async (from: Place, next: EventPosition): Promise<Place | undefined> => {
    const passed = { ...from, read: next }
    if (performance.now() - from.storedAtMs < STORE_MS || isSame(from.stored, next)) return passed
    const [moved] = await run(moveCallbackCursor(from.term, from.stored, next))
    return moved && { ...passed, stored: next, storedAtMs: performance.now() }
  }

  const submit = async (
    from: Place,
    next: EventPosition,
    submissions: readonly Submission[],
  ): Promise<Place | undefined> => {
    const submitting = submitJobs(submissions, { charged: false })
    const answers = await transaction(async (runInside) => {
      const [moved] = await runInside(moveCallbackCursor(from.term, from.stored, next))
      return moved && runInside(submitting)
    })
    if (!answers) return undefined
    const { rows } = submitting.read(answers)
    for (const row of rows) if (row.id === null) logRefusal(submissions[row.submission - 1], row)
    if (rows.some((row) => row.id !== null && !row.announced)) await run(notify(JOBS_READY, [CALLBACK_TYPE]))
    return { ...from, stored: next, read: next, storedAtMs: performance.now() }
  }

  /** A callback that the database refuses is passed over: others are not held up. */
  const logRefusal = (submission: Submission | undefined, refusal: Refusal): void => {
    const triggeredBy = submission?.jobs[0]?.triggered_by
    const job_id = triggeredBy?.kind === 'callback' ? triggeredBy.job_id : undefined
    logger.error('callback refused', { job_id, reason: JSON.stringify(refusal) })
  }

  return {
    name: 'callbacks',
    step: async (term) => {
      const from = place?.term === term ? place : await begin(term)
      // What goes wrong from here on may have happened all the same: the next step looks where the cursor is.
      place = undefined
      const [page] = await run(findCallbacks(from.read, LIMITS))
      if (!page) throw new Error('A page of events is one row')
      const { events, next, more } = page
      place = events.length > 0 ? await submit(from, next, toSubmissions(events)) : await pass(from, next)
      return more && place ? 0 : POLL_MS
    },
    rest: async () => {
      place = undefined
    },
  }
}

const isSame = (a: EventPosition, b: EventPosition): boolean =>
  a.xid === b.xid && a.id === b.id && a.position === b.position
