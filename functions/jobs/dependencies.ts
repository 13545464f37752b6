import { type ProblemReason, toPointer } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import { findGraphFaults, type GraphFault, refOf } from './graph-faults.ts'
import type { JobRequest } from './new-job.ts'
import type { PathOf } from './submission.ts'

/** Refuses a batch whose references cannot be resolved or go in a circle. */
export const checkGraph = (requests: readonly JobRequest[], pathOf: PathOf): void => {
  const faults = findGraphFaults(requests)
  const [first] = faults
  if (first)
    throw problemAt(
      SLUGS[first.kind],
      faults.flatMap((fault) => toReasons(fault, requests, pathOf)),
    )
}

const SLUGS = {
  'duplicate-ref': 'invalid-request',
  'unknown-ref': 'unknown-dependency',
  cycle: 'dependency-cycle',
} as const

/** For each job the ids that it waits for, each once, in the order in which they are read back. */
export const resolveParents = (requests: readonly JobRequest[], ids: readonly string[]): string[][] => {
  const resolve = createRefs(requests, ids)
  return requests.map(({ depends_on }) => [...new Set(depends_on.map(resolve))].sort())
}

/** The id that an entry of `depends_on` means: itself, or that of the job of the batch with the ref. */
export const createRefs = (requests: readonly JobRequest[], ids: readonly string[]) => {
  const byRef = new Map(requests.map(({ ref }, i) => [ref, ids[i]]))
  return (entry: string): string => {
    const ref = refOf(entry)
    return ref === undefined ? entry : (byRef.get(ref) ?? entry)
  }
}

const toReasons = (fault: GraphFault, requests: readonly JobRequest[], pathOf: PathOf): ProblemReason[] => {
  const at = (job: number, ...path: PropertyKey[]): string => toPointer([...pathOf(job), ...path])
  switch (fault.kind) {
    case 'duplicate-ref': {
      const detail = `is already the ref of ${at(fault.first)}`
      return [{ in: 'body', pointer: at(fault.job, 'ref'), detail }]
    }
    case 'unknown-ref': {
      const detail = `names no ref of this batch: ${requests[fault.job]?.depends_on[fault.entry]}`
      return [{ in: 'body', pointer: at(fault.job, 'depends_on', fault.entry), detail }]
    }
    case 'cycle': {
      const refs = fault.edges.map(({ job }) => requests[job]?.ref)
      const detail = `closes the circle ${[...refs, refs[0]].join(' → ')}`
      return fault.edges.map(({ job, entry }) => ({
        in: 'body',
        pointer: at(job, 'depends_on', entry),
        detail,
      }))
    }
  }
}
