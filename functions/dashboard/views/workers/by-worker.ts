/** Jobs that run, by the worker that runs them; those that have run longest first. */
export const byWorker = <Job extends { worker_id: string | null; started_at: string | null }>(
  jobs: readonly Job[],
): Map<string, Job[]> => {
  const groups = new Map<string, Job[]>()
  for (const job of jobs.toSorted((a, b) => startOf(a) - startOf(b))) {
    if (job.worker_id === null) continue
    const group = groups.get(job.worker_id)
    if (group) group.push(job)
    else groups.set(job.worker_id, [job])
  }
  return groups
}

const startOf = ({ started_at }: { started_at: string | null }): number =>
  started_at === null ? Number.POSITIVE_INFINITY : Date.parse(started_at)
