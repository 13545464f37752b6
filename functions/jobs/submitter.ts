/**
 * Commits submissions in groups. A statement is sent at once if a lane is free; what arrives while all lanes are busy
 * waits and goes together in the next one. So a lone job is not delayed, and many cost few round trips and few commits.
 * Each is acknowledged after its own commit.
 *
 * On workerd the submitters of one group are requests of one isolate, and I/O belongs to the request that started it.
 * So nobody works for others for long: the one whose turn it is sends one statement, for itself and all that wait, and
 * passes the turn on to the first that waits then. `hold` (`waitUntil`) keeps a request alive whose client hangs up.
 */
import { JOBS_READY } from '../../db/channels.ts'
import { notify } from '../../db/queries/notifications.ts'
import { type Submission, type SubmissionRow, submitJobs } from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
import { isConnectionLoss, isTransient } from '../../db/rules/transient-error.ts'
import { createAnnouncer } from './announcer.ts'

export type Hold = (work: Promise<unknown>) => void

export type Submitter = {
  /** Resolves with the rows of this submission once it is committed or refused. */
  submit(submission: Submission, hold?: Hold): Promise<SubmissionRow[]>
}

type Turn = { kind: 'lead' } | { kind: 'rows'; rows: SubmissionRow[] } | { kind: 'failed'; error: unknown }

type Entry = { submission: Submission; bytes: number; settle: (turn: Turn) => void }

const MAX_JOBS = 500
const MAX_BYTES = 1024 * 1024
/** Longer than any statement of ours should take. Whoever still waits then assumes that the turn was lost. */
const PATIENCE_MS = 5_000

export const createSubmitter = (options: {
  run: Run
  /** Statements in flight. */
  lanes?: number
  onError?: (error: unknown) => void
}): Submitter => {
  const { run, lanes = 2, onError = () => {} } = options
  const announcer = createAnnouncer((types) => run(notify(JOBS_READY, types)), onError)
  let waiting: Entry[] = []
  let busy = 0

  const submit = async (submission: Submission, hold: Hold): Promise<SubmissionRow[]> => {
    const { promise, resolve } = Promise.withResolvers<Turn>()
    const entry = { submission, bytes: JSON.stringify(submission.jobs).length, settle: resolve }
    waiting.push(entry)
    let turn: Turn = { kind: 'lead' }
    if (busy < lanes) busy++
    else turn = await withPatience(promise, () => waiting.includes(entry))
    if (turn.kind === 'lead') {
      await lead(entry, hold)
      turn = await promise
    }
    if (turn.kind === 'failed') throw turn.error
    return turn.kind === 'rows' ? turn.rows : []
  }

  const lead = async (own: Entry, hold: Hold): Promise<void> => {
    const group = takeGroup(own)
    try {
      await commit(group, hold)
    } finally {
      const [next] = waiting
      if (next) next.settle({ kind: 'lead' })
      // A turn that was taken for lost and was not is given back twice.
      else busy = Math.max(0, busy - 1)
    }
  }

  const takeGroup = (own: Entry): Entry[] => {
    const group = [own]
    let jobs = own.submission.jobs.length
    let bytes = own.bytes
    const left: Entry[] = []
    for (const entry of waiting) {
      if (entry === own) continue
      jobs += entry.submission.jobs.length
      bytes += entry.bytes
      if (left.length === 0 && jobs <= MAX_JOBS && bytes <= MAX_BYTES) group.push(entry)
      else left.push(entry)
    }
    waiting = left
    return group
  }

  /** What Postgres refuses is halved until the one that it refuses stands alone: it takes no other with it. */
  const commit = async (group: readonly Entry[], hold: Hold): Promise<void> => {
    try {
      const rows = await run(submitJobs(group.map(({ submission }) => submission)))
      const bySubmission = Map.groupBy(rows, (row) => row.submission)
      group.forEach(({ settle }, i) => {
        settle({ kind: 'rows', rows: bySubmission.get(i + 1) ?? [] })
      })
      const types = readyTypes(group, rows)
      if (types.length > 0) hold(announcer.announce(types))
    } catch (error) {
      if (group.length > 1 && isRefusal(error)) {
        const half = Math.ceil(group.length / 2)
        await commit(group.slice(0, half), hold)
        await commit(group.slice(half), hold)
      } else for (const { settle } of group) settle({ kind: 'failed', error })
    }
  }

  return {
    submit: (submission, hold = () => {}) => {
      const work = submit(submission, hold)
      hold(work.catch(() => {}))
      return work
    },
  }
}

/** A request that waits for its turn and was forgotten, because the one before it died, takes the turn itself. */
const withPatience = async (turn: Promise<Turn>, isWaiting: () => boolean): Promise<Turn> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const patience = new Promise<Turn>((resolve) => {
    timer = setTimeout(() => {
      if (isWaiting()) resolve({ kind: 'lead' })
    }, PATIENCE_MS)
  })
  try {
    return await Promise.race([turn, patience])
  } finally {
    clearTimeout(timer)
  }
}

const readyTypes = (group: readonly Entry[], rows: readonly SubmissionRow[]): string[] => {
  const ready = new Set(rows.flatMap((row) => (row.id !== null && row.status === 'ready' ? [row.id] : [])))
  const jobs = group.flatMap(({ submission }) => submission.jobs)
  return [...new Set(jobs.flatMap(({ id, type }) => (ready.has(id) ? [type] : [])))]
}

/** Postgres answered that it will not have it, so it certainly did not commit. */
const isRefusal = (error: unknown): boolean => {
  const { code } = error as { code?: unknown }
  return (
    typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !isTransient(code) && !isConnectionLoss(code)
  )
}
