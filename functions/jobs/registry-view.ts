import { z } from '@hono/zod-openapi'
import type { LeaderRow, WorkerRow } from '../../db/queries/registry.ts'
import { timestamp } from '../http/openapi.ts'

export const worker = z
  .object({
    worker_id: z.string(),
    hostname: z.string().nullable().openapi({ description: 'Null unless you are an admin.' }),
    status: z.enum(['online', 'draining', 'offline']).openapi({
      description: '`draining`: finishes its jobs and stops. `offline`: not seen for 10 s, or stopped.',
    }),
    last_seen: timestamp,
    started_at: timestamp,
    jobs_processed: z.int().nullable().openapi({
      description: 'Across all organisations, since the worker started. Null unless you are an admin.',
    }),
    running: z.int().openapi({
      description:
        "How many of your organisation's jobs it is running. Admins see the total across all organisations.",
    }),
    slots: z.int(),
    cpu_units: z.number(),
    memory_mb: z.int(),
    types: z.array(z.string()).openapi({ description: 'The types of jobs that it handles.' }),
  })
  .openapi('Worker')

export const viewWorker = (row: WorkerRow): z.output<typeof worker> => ({
  worker_id: row.worker_id,
  hostname: row.hostname,
  status: row.status,
  last_seen: row.last_seen,
  started_at: row.started_at,
  jobs_processed: row.jobs_processed === null ? null : Number(row.jobs_processed),
  running: row.running,
  slots: row.slots,
  cpu_units: row.cpu_units,
  memory_mb: row.memory_mb,
  types: row.types,
})

export const jobType = z
  .object({
    type: z.string(),
    payload_schema: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'JSON Schema of the payload, as its handler has it.' }),
    workers: z.int().openapi({ description: 'Online workers that handle it. None: its jobs wait for one.' }),
  })
  .openapi('JobType')

export const leader = z
  .object({
    worker_id: z.string(),
    term: z.int().openapi({ description: 'Grows with each election.' }),
    elected_at: timestamp,
    last_seen: timestamp,
  })
  .openapi('Leader')

export const viewLeader = (row: LeaderRow): z.output<typeof leader> => ({
  worker_id: row.worker_id,
  term: Number(row.term),
  elected_at: row.elected_at,
  last_seen: row.last_seen,
})
