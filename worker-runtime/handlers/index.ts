import type { AnyJobHandler } from '../handler-api.ts'
import { etlJob } from './etl/etl.ts'
import { httpJob } from './http.ts'
import { mlJob } from './ml/ml.ts'
import { createShellJob } from './shell.ts'

/** What the operator decides about handlers. */
export type HandlerSettings = {
  /** Executables that shell jobs may run. Without them there are no shell jobs. */
  readonly shellAllow: readonly string[] | undefined
}

/** Every type that this worker runs. A handler of your own is one more line here. */
export const createHandlers = ({ shellAllow }: HandlerSettings): readonly AnyJobHandler[] => [
  httpJob,
  etlJob,
  mlJob,
  ...(shellAllow ? [createShellJob({ executables: shellAllow })] : []),
]
