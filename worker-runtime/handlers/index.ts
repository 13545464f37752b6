import type { AnyJobHandler } from '../handler-api.ts'
import { etlJob } from './etl/etl.ts'
import { httpJob } from './http.ts'
import { mlJob } from './ml/ml.ts'

/** Every type that this worker runs. A handler of your own is one more line here. */
export const handlers: readonly AnyJobHandler[] = [httpJob, etlJob, mlJob]
