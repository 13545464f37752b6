import type { NewJob } from '../../db/queue/job-fields.ts'
import { CLIENT, INTERNAL } from './otlp.ts'
import type { SpanPart } from './request-trace.ts'

/** What every submission is made of. */
export const PREDICTING: SpanPart = { name: 'predict', kind: INTERNAL }

/** From when they are ready to be stored until they are: others may share the statement. */
export const inserting = (jobs: readonly NewJob[]): SpanPart => ({
  name: 'insert',
  kind: CLIENT,
  attributes: {
    'db.system.name': 'postgresql',
    'db.operation.name': 'INSERT',
    'db.collection.name': 'jobs',
    'db.operation.batch.size': jobs.length > 1 ? jobs.length : undefined,
    'smartqueue.job.id': jobs.length === 1 ? jobs[0]?.id : undefined,
  },
})
