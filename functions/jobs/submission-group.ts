import type { Member } from '../../db/queries/scope.ts'
import type { Submission, SubmissionRow } from '../../db/queue/submit.ts'
import { newWaiting, type Waiting } from './waiting.ts'

/** `member`: used to look up a submission whose answer was lost. */
export type OwnSubmission = Submission & { readonly member?: Member }

/** A submission in progress. */
export type Entry = Waiting<SubmissionRow[]> & { submission: OwnSubmission }

export const isBusy = (row: SubmissionRow): boolean => row.id === null && row.refusal === 'busy'

export const keysOf = ({ submission: { orgId, keys = [] } }: Entry): string[] =>
  keys.map(({ key }) => `${orgId} ${key}`)

export const newEntry = (submission: OwnSubmission): Entry => ({ ...newWaiting(), submission })

export const bytesOf = ({ submission }: Entry): number => {
  let bytes = 0
  for (const { payload } of submission.jobs) bytes += JSON.stringify(payload).length
  return bytes
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
