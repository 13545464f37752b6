import {
  CALLBACK_RETRY,
  CALLBACK_TIMEOUT_SECONDS,
  CALLBACK_TYPE,
  type CallbackBody,
} from '../rules/callbacks.ts'
import { rankTerms } from '../rules/priority.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import { uuidV7 } from '../rules/uuid-v7.ts'
import type { NewJob, TriggeredBy } from './submission.ts'

/** Who is to be told what; `triggeredBy` null: somebody tries an endpoint out. */
export type Callback = { url: string; body: CallbackBody; triggeredBy: TriggeredBy | null }

/** Of a job; hosts may have 253. */
const MAX_NAME_CHARACTERS = 200

/** The job that tells a URL of an event. */
export const newCallback = ({ url, body, triggeredBy }: Callback): NewJob => ({
  id: uuidV7(),
  type: CALLBACK_TYPE,
  // Not the whole address: what follows the host may be secret, and would make a stream of each.
  name: `${body.type} → ${URL.parse(url)?.host ?? 'nowhere'}`.slice(0, MAX_NAME_CHARACTERS),
  payload: { url, event: body.type, body },
  priority: 'normal',
  tags: [],
  timeout_seconds: CALLBACK_TIMEOUT_SECONDS,
  max_attempts: CALLBACK_RETRY.maxAttempts,
  initial_delay_seconds: CALLBACK_RETRY.initialDelaySeconds,
  backoff_multiplier: CALLBACK_RETRY.backoffMultiplier,
  ...DEFAULT_RESOURCES,
  ...rankTerms('normal', CALLBACK_TIMEOUT_SECONDS),
  run_at: null,
  deadline: null,
  depends_on: [],
  on_parent_failure: 'fail',
  callback_url: null,
  triggered_by: triggeredBy,
  prediction: null,
})
