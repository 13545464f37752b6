import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import type { TestDatabase } from '../support/database.ts'
import type { EtlInput } from '../support/etl.ts'
import { newJob, seedJobs, seedTenant, watchJobs } from '../support/jobs.ts'
import { ORDERS_TABLE, serveOrders } from '../support/orders-csv.ts'
import { peakMemoryMib } from '../support/peak-memory.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker } from '../support/worker.ts'
import { withOwnPostgres } from './own-postgres.ts'
import type { BenchOptions, BenchReport } from './report.ts'

const ROWS = 1_000_000
const QUICK_ROWS = 50_000
const TIMEOUT_MS = 600_000

type Measured = {
  what: string
  rows: number
  seconds: number
  rows_per_second: number
  peak_mib: number | undefined
}

/** How fast rows go through an etl job, and how much memory the worker takes: a CSV over HTTP, and each kind of target. */
export const benchEtl = ({ say, quick }: BenchOptions): Promise<BenchReport> =>
  withOwnPostgres(async (database) => {
    const rows = quick ? QUICK_ROWS : ROWS
    const orders = await serveOrders()
    const measured: Measured[] = []
    for (const [what, payload] of Object.entries(payloads(orders.urlOf(rows)))) {
      say(`${what}: ${rows} rows, by a new worker…`)
      const { seconds, peakMib } = await measure(database, payload)
      measured.push({
        what,
        rows,
        seconds,
        rows_per_second: Math.round(rows / seconds),
        peak_mib: peakMib,
      })
    }
    orders.stop()
    return { data: measured, text: measured.map(line).join('\n') }
  })

const line = ({ what, seconds, rows_per_second, peak_mib }: Measured): string =>
  `${what.padEnd(28)} ${seconds.toFixed(1)} s, ${rows_per_second} rows/s, worker ${peak_mib ?? '?'} MiB at most`

const payloads = (url: string): Record<string, EtlInput> => {
  const extract = { from: 'http', url, format: 'csv' } as const
  const table = { to: 'postgres', connection: 'warehouse', table: 'orders' } as const
  const paid = { filter: { path: '$.status', eq: 'paid' } }
  return {
    'nothing but reading': {
      extract,
      transform: [{ filter: { path: '$.status', eq: '' } }],
      load: { to: 'result' },
    },
    'filter and group': {
      extract,
      transform: [
        paid,
        {
          group: {
            by: ['country', 'city'],
            aggregate: { total: { sum: '$.amount' }, orders: { count: true } },
          },
        },
        { sort: [{ by: '$.total', order: 'desc' }] },
      ],
      load: { to: 'result' },
    },
    'append to Postgres': { extract, load: table },
    'cast, derive and append': {
      extract,
      transform: [
        paid,
        { cast: { id: 'integer', amount: 'number', paid_at: 'timestamp' } },
        { derive: { city: '{{ $.country }}, {{ $.city ?? "?" }}' } },
      ],
      load: table,
    },
    'append in one transaction': { extract, load: { ...table, atomic: true } },
    'upsert to Postgres': { extract, load: { ...table, mode: 'upsert', key: ['id'] } },
  }
}

const measure = async (
  database: TestDatabase,
  payload: EtlInput,
): Promise<{ seconds: number; peakMib: number | undefined }> => {
  await database.sql(`drop table if exists orders; ${ORDERS_TABLE}; create unique index on orders (id)`)
  const tenant = await seedTenant(database.run)
  const connections = JSON.stringify({ warehouse: database.url })
  const worker = await startWorker(database.url, {
    SMARTQUEUE_CONNECTIONS: connections,
    SMARTQUEUE_LOG_LEVEL: 'warn',
  })
  try {
    const [id] = await seedJobs(database.run, tenant, [newJob({ type: 'etl', payload: { ...payload } })])
    await database.run(notify(JOBS_READY, ['etl']))
    const done = await waitFor(
      'the job',
      async () => {
        const job = await watchJobs(database.sql).look(id)
        if (job.status === 'failed') throw new Error(`The job failed: ${JSON.stringify(job)}`)
        return job.status === 'completed' && job
      },
      TIMEOUT_MS,
    )
    const { duration_ms } = done.result as { duration_ms: number }
    return { seconds: duration_ms / 1000, peakMib: peakMemoryMib(worker.pid) }
  } finally {
    await worker.kill()
  }
}
