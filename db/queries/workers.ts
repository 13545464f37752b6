import type { Query } from '../query.ts'

export type WorkerStatus = 'online' | 'draining' | 'offline'

/** A worker writes its own row: at start, every two seconds, and when it goes. */
export const reportWorker = (worker: {
  workerId: string
  hostname: string
  status: WorkerStatus
  types: readonly string[]
  slots: number
  cpuUnits: number
  memoryMb: number
  running: number
  jobsProcessed: number
}): Query<never> => ({
  name: 'report-worker',
  text: `
    insert into smartqueue.workers (
      worker_id, hostname, status, types, slots, cpu_units, memory_mb, running, jobs_processed
    )
    values ($1::text, $2::text, $3::text, $4::text[], $5::int, $6::real, $7::int, $8::int, $9::bigint)
    on conflict (worker_id) do update
    set
      status = excluded.status, running = excluded.running, jobs_processed = excluded.jobs_processed,
      last_seen = now()`,
  values: [
    worker.workerId,
    worker.hostname,
    worker.status,
    worker.types,
    worker.slots,
    worker.cpuUnits,
    worker.memoryMb,
    worker.running,
    worker.jobsProcessed,
  ],
})

/** An idle worker asks the others for jobs that they hold and have not started: whoever has claimed several may. */
export const askForWork = (workerId: string): Query<never> => ({
  name: 'ask-for-work',
  text: `
    select pg_notify('worker_idle', $1::text)
    where exists (
      select
      from smartqueue.leases
      where worker_id <> $1::text
        and cardinality(job_ids) > 1
    )`,
  values: [workerId],
})
