import { defineThreadedJob } from '../../handler-api.ts'
import { schema } from './schema.ts'

/** Extract, transform, load: docs/etl.md. In a thread of its own, because parsing a file takes all of a core. */
export const etlJob = defineThreadedJob({
  type: 'etl',
  schema,
  module: new URL('./run.ts', import.meta.url),
})
