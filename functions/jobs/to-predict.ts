import type { JobToPredict } from '../prediction/predictor.ts'
import { refOf } from './graph-faults.ts'
import type { JobRequest } from './new-job.ts'

/** What the predictor looks at of each job of a request. */
export const createToPredict = (requests: readonly JobRequest[]) => {
  const positions = new Map(requests.map(({ ref }, n) => [ref, n]))

  const parentsOf = ({ depends_on }: JobRequest): number[] | null => {
    const parents = depends_on.map((entry) => {
      const ref = refOf(entry)
      return ref === undefined ? undefined : positions.get(ref)
    })
    return parents.every((parent) => parent !== undefined) ? parents : null
  }

  return (request: JobRequest): JobToPredict => ({
    type: request.type,
    name: request.name,
    priority: request.priority,
    payload: request.payload,
    timeoutSeconds: request.timeout_seconds ?? null,
    cpuUnits: request.resources.cpu_units,
    memoryMb: request.resources.memory_mb,
    runAtMs: request.run_at === undefined ? null : Date.parse(request.run_at),
    parents: parentsOf(request),
  })
}
