import type {
  QuotaExceeded,
  RefusedParent,
  RefusedSubmission,
  SubmissionRow,
  SubmittedJob,
  UsedKeys,
} from '../../db/queue/submit.ts'
import { membershipEnded } from '../auth/permit.ts'
import type { Principal } from '../auth/principal.ts'
import { ProblemError, toPointer } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import { createRefs } from './dependencies.ts'
import type { JobRequest } from './new-job.ts'
import { quotaExceeded } from './quota.ts'
import type { PathOf } from './submission.ts'

export const isSubmitted = (row: SubmissionRow): row is SubmittedJob => row.id !== null

export const isUsedKey = (row: SubmissionRow): row is RefusedSubmission & UsedKeys =>
  row.id === null && row.refusal === 'used_key'

export const isRefusedParent = (row: SubmissionRow): row is RefusedSubmission & RefusedParent =>
  row.id === null && (row.refusal === 'unknown_parent' || row.refusal === 'failed_parent')

const isNoMember = (row: SubmissionRow): boolean => row.id === null && row.refusal === 'not_member'

const isOverQuota = (row: SubmissionRow): row is RefusedSubmission & QuotaExceeded =>
  row.id === null && row.refusal === 'quota'

/** What was sent: the jobs, the id of each, and where they stood in the body. */
type Sent = { requests: readonly JobRequest[]; ids: readonly string[]; pathOf: PathOf }

/** Throws why the database did not store a submission; nothing if it did. */
export const refuse = (rows: readonly SubmissionRow[], sent: Sent & { principal: Principal }): void => {
  const refusal = refusalOf(rows, sent)
  if (refusal) throw refusal
  if (rows.some(isNoMember)) throw noMember(sent.principal)
}

/** Why not, if it is because of a quota or of what the jobs depend on. */
export const refusalOf = (rows: readonly SubmissionRow[], sent: Sent): ProblemError | undefined => {
  const over = rows.find(isOverQuota)
  if (over) return quotaExceeded(over.detail)
  const refused = rows.filter(isRefusedParent)
  return refused.length > 0 ? refusedParents(refused, sent) : undefined
}

/** An admin may be in an organisation without being a member of it. */
const noMember = ({ role }: Principal): ProblemError =>
  role === 'admin'
    ? new ProblemError('forbidden', 'An admin submits jobs only where they are a member.')
    : membershipEnded()

const refusedParents = (refused: readonly RefusedParent[], { requests, ids, pathOf }: Sent): ProblemError => {
  const resolve = createRefs(requests, ids)
  const unknown = refused.filter(({ refusal }) => refusal === 'unknown_parent')
  const shown = unknown.length > 0 ? unknown : refused
  return problemAt(
    unknown.length > 0 ? 'unknown-dependency' : 'failed-dependency',
    shown.map(({ child_id, parent_id }) => {
      const job = Math.max(0, ids.indexOf(child_id))
      const entry = requests[job]?.depends_on.findIndex((one) => resolve(one) === parent_id) ?? 0
      return {
        in: 'body',
        pointer: toPointer([...pathOf(job), 'depends_on', entry]),
        detail:
          unknown.length > 0
            ? `names ${parent_id}, which is no job of this organisation`
            : `names ${parent_id}, which has failed or was cancelled`,
      }
    }),
  )
}
