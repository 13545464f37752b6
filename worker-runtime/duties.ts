import { removeDeletedOrg } from '../db/queries/deletion.ts'
import { JOBS_CANCELLED, JOBS_READY, notify, WORKER_ISOLATES } from '../db/queries/notifications.ts'
import type { Run } from '../db/query.ts'
import {
  askToIsolate,
  lookOut,
  markSilentWorkers,
  moveHeldBackJobs,
  nextPlace,
  type Outlook,
  reclaimExpiredLeases,
  rescoreJobs,
  reserveCapacity,
  SWEEP_START,
  type SweepPlace,
  takeMovedSeries,
  wakeDueJobs,
} from '../db/queue/upkeep.ts'
import { deleteExpired, deleteStale, EXPIRING, forgetIdleSeries } from '../db/retention/retention.ts'
import type { Logger } from './logger.ts'

/** One duty of the leader: does a bounded piece of work and answers the milliseconds until the next. */
export type Duty = {
  readonly name: string
  step(term: string): Promise<number>
  /** This worker does not lead, or stops: lets go of whatever the duty holds. Twice is safe. */
  rest?(): Promise<void>
}

export type DutyOptions = { run: Run; logger: Logger; retentionDays: number }

const BATCH = 500
const SWEEP = 5_000
/** A deep queue must not be looked through at the cost of being worked off. */
const SWEEP_PAUSE_MS = 20
/** Ten thousand a second, for the same reason. */
const RESCORE = 1_000
/** Each sweep looks through the whole queue, so it is worth doing for many. */
const MOVED_SERIES = 5_000
/** Series have moved, but there is no order to correct. Finding that out takes two index probes for each organisation. */
const ALL_IN_ONE_LANE_MS = 5_000
/** Submissions wait while series are forgotten: not for long. */
const IDLE_SERIES = 1_000
const SECOND = 1_000

/** A big job that would be next waits this long for room before a worker keeps it free. */
const RESERVE_AFTER_SECONDS = 5

/** Duties that ask at about the same time share an answer: the most frequent asks five times a second. */
const OUTLOOK_MS = 190

export const createDuties = (options: DutyOptions): Duty[] => {
  const look = createOutlook(options.run)
  return [
    wakeDue(options, look),
    watchLeases(options, look),
    watchWorkers(options),
    parkHeldBackJobs(options, look),
    reserve(options, look),
    isolate(options, look),
    rescore(options, look),
    expire(options),
    forgetSeries(options),
    forget(options),
    removeOrgs(options),
  ]
}

type Look = () => Promise<Outlook>

const createOutlook = (run: Run): Look => {
  let latest: Promise<Outlook> | undefined
  let askedAtMs = 0
  const ask = async (): Promise<Outlook> => {
    const [outlook] = await run(lookOut())
    if (!outlook) throw new Error('The outlook is one row')
    return outlook
  }
  return () => {
    if (latest && performance.now() - askedAtMs < OUTLOOK_MS) return latest
    askedAtMs = performance.now()
    latest = ask()
    return latest
  }
}

const announce = async (run: Run, rows: readonly { type: string | null }[]): Promise<void> => {
  const types = [...new Set(rows.flatMap(({ type }) => type ?? []))]
  if (types.length > 0) await run(notify(JOBS_READY, types))
}

const wakeDue = ({ run }: DutyOptions, look: Look): Duty => ({
  name: 'waking of due jobs',
  step: async (term) => {
    if (!(await look()).due) return 200
    const woken = await run(wakeDueJobs(term, BATCH))
    await announce(run, woken)
    return woken.length === BATCH ? 0 : 200
  },
})

const watchLeases = ({ run, logger }: DutyOptions, look: Look): Duty => ({
  name: 'watchdog',
  step: async (term) => {
    if (!(await look()).expired) return 500
    const reclaimed = await run(reclaimExpiredLeases(term, BATCH))
    await announce(run, [...reclaimed, ...(reclaimed[0]?.acquitted_types ?? []).map((type) => ({ type }))])
    for (const { job_id, worker_id, state, counts, suspect } of reclaimed) {
      logger.warn('lease expired', { job_id, held_by: worker_id, state, counts, runs_alone: suspect })
    }
    return reclaimed.length === BATCH ? 0 : 500
  },
})

const watchWorkers = ({ run, logger }: DutyOptions): Duty => ({
  name: 'registry',
  step: async (term) => {
    for (const { worker_id } of await run(markSilentWorkers(term))) {
      logger.warn('worker offline', { worker_id })
    }
    return 2 * SECOND
  },
})

/** Parks what is paused or without a worker, and brings it back when that ends. */
const parkHeldBackJobs = ({ run }: DutyOptions, look: Look): Duty => {
  let heldBack = ''
  // A new term begins with a look at what is parked: leaders before may have parked for reasons that are gone.
  let lookedInTerm: string | undefined
  let lookedAtMs = 0
  /** The sweep for jobs to park, the newest job when it began, and when the sweep before it began. */
  let parkAfter = SWEEP_START
  let newestKey = '0'
  let sinceKey = '0'
  let unparkAfter: SweepPlace | undefined
  // Someone had locked a job that was to come back: one more look, or it would stay where it is.
  let missed = false

  return {
    name: 'parking',
    step: async (term) => {
      const { held_back } = await look()
      // Now and then anyway: a pause may have begun and ended between the look at the pauses and the parking.
      const lookIsOld = performance.now() - lookedAtMs > 60 * SECOND
      if (held_back !== heldBack || term !== lookedInTerm || lookIsOld) {
        heldBack = held_back
        lookedInTerm = term
        lookedAtMs = performance.now()
        parkAfter = SWEEP_START
        sinceKey = '0'
        unparkAfter = SWEEP_START
      }
      if (unparkAfter) {
        const [step] = await run(moveHeldBackJobs({ term, parked: true, after: unparkAfter, limit: SWEEP }))
        await announce(
          run,
          (step?.types ?? []).map((type) => ({ type })),
        )
        missed ||= (step?.missed ?? 0) > 0
        unparkAfter = nextPlace(step, SWEEP)
        if (unparkAfter) return SWEEP_PAUSE_MS
        if (missed) unparkAfter = SWEEP_START
        missed = false
        return 500
      }
      if (heldBack === '') return 500
      const [step] = await run(
        moveHeldBackJobs({ term, parked: false, after: parkAfter, sinceKey, limit: SWEEP }),
      )
      if (parkAfter === SWEEP_START) newestKey = step?.newest_key ?? newestKey
      const next = nextPlace(step, SWEEP)
      parkAfter = next ?? SWEEP_START
      if (next) return SWEEP_PAUSE_MS
      sinceKey = newestKey
      return 500
    },
  }
}

const reserve = ({ run, logger }: DutyOptions, look: Look): Duty => ({
  name: 'reservations',
  step: async (term) => {
    if (!(await look()).big) return SECOND
    const [reservation] = await run(reserveCapacity(term, RESERVE_AFTER_SECONDS))
    if (reservation) logger.info('capacity reserved', reservation)
    return reservation ? 0 : SECOND
  },
})

/** Asks workers to run suspects alone. */
const isolate = ({ run, logger }: DutyOptions, look: Look): Duty => ({
  name: 'isolation',
  step: async (term) => {
    if (!(await look()).suspects) return SECOND
    const asked = await run(askToIsolate(term))
    for (const { worker_id, newly } of asked) {
      if (newly) logger.info('worker asked to run suspects alone', { worker_id })
    }
    const workers = asked.map(({ worker_id }) => worker_id)
    if (workers.length > 0) await run(notify(WORKER_ISOLATES, workers))
    return SECOND
  },
})

/** When a series' estimate has moved, its queued jobs move with it. */
const rescore = ({ run }: DutyOptions, look: Look): Duty => {
  let seriesIds: string[] = []
  let after = SWEEP_START

  return {
    name: 're-scoring',
    step: async (term) => {
      if (seriesIds.length === 0) {
        if (!(await look()).moved) return SECOND
        seriesIds = (await run(takeMovedSeries(term, MOVED_SERIES))).map(({ id }) => id)
        after = SWEEP_START
        if (seriesIds.length === 0) return ALL_IN_ONE_LANE_MS
      }
      const [step] = await run(rescoreJobs({ term, seriesIds, after, limit: RESCORE }))
      const next = nextPlace(step, RESCORE)
      after = next ?? SWEEP_START
      if (next) return 100
      seriesIds = []
      return SECOND
    },
  }
}

const expire = ({ run, logger, retentionDays: days }: DutyOptions): Duty => ({
  name: 'retention',
  step: async (term) => {
    const deleted: Record<string, number> = {}
    let more = false
    for (const kind of EXPIRING) {
      // Logs, payloads and attempts go with them.
      const limit = kind === 'jobs' || kind === 'deliveries' ? BATCH : SWEEP
      const [step] = await run(deleteExpired(kind, { term, days, limit }))
      if (step?.deleted) deleted[kind] = step.deleted
      more ||= step?.deleted === limit
    }
    if (deleted.jobs) logger.debug('expired jobs deleted', deleted)
    return more ? 50 : 60 * SECOND
  },
})

/** Series of which nothing is left are forgotten, in rounds through all of them. */
const forgetSeries = ({ run, logger, retentionDays: days }: DutyOptions): Duty => {
  let afterId = '0'

  return {
    name: 'deletion of idle series',
    step: async (term) => {
      const [step] = await run(forgetIdleSeries({ term, days, afterId, limit: IDLE_SERIES }))
      if (step?.forgotten) logger.debug('idle series forgotten', { series: step.forgotten })
      const more = step?.looked_at === IDLE_SERIES
      // What could not be forgotten because jobs were being submitted has its next chance in the next round.
      afterId = more ? (step.last_id ?? '0') : '0'
      return more ? 100 : 600 * SECOND
    },
  }
}

const forget = ({ run, retentionDays }: DutyOptions): Duty => ({
  name: 'deletion of what is stale',
  step: async (term) => {
    await run(deleteStale(term, retentionDays))
    return 60 * SECOND
  },
})

/** Removes the rows of deleted organisations, in batches small enough not to hold up other work. */
const removeOrgs = ({ run, logger }: DutyOptions): Duty => ({
  name: 'removal of deleted organisations',
  step: async (term) => {
    const [batch] = await run(removeDeletedOrg(term, BATCH))
    if (!batch) return 2 * SECOND
    if (batch.worker_ids.length > 0) await run(notify(JOBS_CANCELLED, batch.worker_ids))
    if (batch.finished) logger.info('organisation removed', { org_id: batch.org_id })
    return SWEEP_PAUSE_MS
  },
})
