import type { Member } from '../../db/queries/scope.ts'
import type { Submission, SubmissionRow } from '../../db/queue/submit.ts'

/** `member`: who may look for a submission whose answer was lost. */
export type OwnSubmission = Submission & { readonly member?: Member }

/** A submission on its way. */
export type Entry = {
  submission: OwnSubmission
  bytes: number
  sent: boolean
  settled: boolean
  /** Tells that it is this one's turn to send. */
  turn: PromiseWithResolvers<void>
  rows: PromiseWithResolvers<SubmissionRow[]>
}

export const isBusy = (row: SubmissionRow): boolean => row.id === null && row.refusal === 'busy'

export const keysOf = ({ submission: { orgId, keys = [] } }: Entry): string[] =>
  keys.map(({ key }) => `${orgId} ${key}`)

export const newEntry = (submission: OwnSubmission): Entry => {
  const rows = Promise.withResolvers<SubmissionRow[]>()
  // Nobody may be left to hear of it.
  rows.promise.catch(() => {})
  return {
    submission,
    bytes: bytesOf(submission),
    sent: false,
    settled: false,
    turn: Promise.withResolvers(),
    rows,
  }
}

const bytesOf = ({ jobs }: OwnSubmission): number => {
  let bytes = 0
  for (const { payload } of jobs) bytes += JSON.stringify(payload).length
  return bytes
}

export const settle = (entry: Entry, how: (rows: Entry['rows']) => void): void => {
  entry.settled = true
  how(entry.rows)
}

export const unannouncedTypes = (group: readonly Entry[], rows: readonly SubmissionRow[]): string[] => {
  const ready = new Set(
    rows.flatMap((row) => (row.id !== null && row.status === 'ready' && !row.announced ? [row.id] : [])),
  )
  const jobs = group.flatMap(({ submission }) => submission.jobs)
  return [...new Set(jobs.flatMap(({ id, type }) => (ready.has(id) ? [type] : [])))]
}
