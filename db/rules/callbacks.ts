/** The type of the jobs that tell. It is SmartQueue's own: no handler may have it, and nobody can submit such a job. */
export const CALLBACK_TYPE = 'callback'

export const CALLBACK_EVENTS = ['job.completed', 'job.failed', 'job.cancelled'] as const

export type CallbackEvent = (typeof CALLBACK_EVENTS)[number]

/** What an endpoint is sent when somebody tries it out. */
export const TEST_EVENT = 'test'

/** What is sent, as the Standard Webhooks specification lays it out. */
export type CallbackBody = {
  type: CallbackEvent | typeof TEST_EVENT
  timestamp: string
  data: Record<string, unknown>
}
