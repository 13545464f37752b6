import { defineThreadedJob } from '../../handler-api.ts'
import { schema } from './schema.ts'

/** Trains the product's own network on a series and forecasts it: docs/ml.md. In a thread of its own, because it computes. */
export const mlJob = defineThreadedJob({
  type: 'ml',
  schema,
  module: new URL('./run.ts', import.meta.url),
})
