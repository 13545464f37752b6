/** What somebody types to submit a job, as it stands in the fields, and what it means to the API. */
import type { Priority } from '../../../../../db/rules/priority.ts'
import type { NewJob } from '../../../api/answers.ts'
import { parseObject } from '../../../ui/json-text.ts'

export type Draft = {
  name: string
  type: string
  payload: string
  priority: Priority
  tags: string
  deadline: string
  runAt: string
  timeoutSeconds: string
  maxAttempts: string
  dependsOn: string
  fairnessKey: string
}

export const EMPTY_DRAFT: Draft = {
  name: '',
  type: '',
  payload: '{}',
  priority: 'normal',
  tags: '',
  deadline: '',
  runAt: '',
  timeoutSeconds: '',
  maxAttempts: '',
  dependsOn: '',
  fairnessKey: '',
}

/** Where the API's errors belong, by their pointers. */
export const POINTERS: Record<keyof Draft, string> = {
  name: '/name',
  type: '/type',
  payload: '/payload',
  priority: '/priority',
  tags: '/tags',
  deadline: '/deadline',
  runAt: '/run_at',
  timeoutSeconds: '/timeout_seconds',
  maxAttempts: '/retry',
  dependsOn: '/depends_on',
  fairnessKey: '/fairness_key',
}

/** The request, or undefined while it is no whole one yet. `payloadError`: why the payload is none. */
export const toRequest = (
  draft: Draft,
): { request: NewJob | undefined; payloadError: string | undefined } => {
  const payload = parseObject(draft.payload)
  if (!payload.ok) return { request: undefined, payloadError: payload.error }
  const name = draft.name.trim()
  if (!name || !draft.type) return { request: undefined, payloadError: undefined }
  const request: NewJob = {
    ...{ name, type: draft.type, payload: payload.value, priority: draft.priority },
    ...given('tags', words(draft.tags)),
    ...given('deadline', time(draft.deadline)),
    ...given('run_at', time(draft.runAt)),
    ...given('timeout_seconds', number(draft.timeoutSeconds)),
    ...given('depends_on', words(draft.dependsOn)),
    ...given('fairness_key', draft.fairnessKey.trim() || undefined),
  }
  const attempts = number(draft.maxAttempts)
  if (attempts !== undefined) request.retry = { max_attempts: attempts }
  return { request, payloadError: undefined }
}

const given = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { [Key in Name]?: Value } => (value === undefined ? {} : ({ [name]: value } as { [Key in Name]: Value }))

const words = (text: string): string[] | undefined => {
  const list = text.split(/[\s,]+/).filter(Boolean)
  return list.length > 0 ? [...new Set(list)] : undefined
}

/** The field has the local time, without a zone. */
const time = (text: string): string | undefined => {
  const ms = new Date(text).getTime()
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

const number = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text))
