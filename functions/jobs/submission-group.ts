import type { Member } from '../../db/queries/scope.ts'
import type { Submission, SubmissionRow } from '../../db/queue/submit.ts'

/** `member`: used to look up a submission whose answer was lost. */
export type OwnSubmission = Submission & { readonly member?: Member }

/** A submission in progress. */
export type Entry = {
  submission: OwnSubmission
  sent: boolean
  settled: boolean
  /** Called when it is this submission's turn to send, or when it is settled. */
  wake: () => void
  rows: PromiseWithResolvers<SubmissionRow[]>
}

export const isBusy = (row: SubmissionRow): boolean => row.id === null && row.refusal === 'busy'

export const keysOf = ({ submission: { orgId, keys = [] } }: Entry): string[] =>
  keys.map(({ key }) => `${orgId} ${key}`)

export const newEntry = (submission: OwnSubmission): Entry => {
  const rows = Promise.withResolvers<SubmissionRow[]>()
  // A rejection that nobody awaits any more must not be reported as unhandled.
  rows.promise.catch(() => {})
  return { submission, sent: false, settled: false, wake: () => {}, rows }
}

export const bytesOf = ({ submission }: Entry): number => {
  let bytes = 0
  for (const { payload } of submission.jobs) bytes += JSON.stringify(payload).length
  return bytes
}

export const settle = (entry: Entry, how: (rows: Entry['rows']) => void): void => {
  entry.settled = true
  how(entry.rows)
  entry.wake()
}

/** The types of jobs that became ready, split by whether the commit has announced them to the workers. */
export const readyTypes = (
  rows: readonly SubmissionRow[],
): Record<'announced' | 'unannounced', Set<string>> => {
  const types = { announced: new Set<string>(), unannounced: new Set<string>() }
  for (const row of rows) {
    if (row.id === null || row.status !== 'ready') continue
    types[row.announced ? 'announced' : 'unannounced'].add(row.type)
  }
  return types
}
