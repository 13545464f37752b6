/** The job that a source makes of an event, as a template: of each field of a job, and of times that count from now. */
import { z } from 'zod'
import { isPlainObject } from '../../db/rules/json-values.ts'
import type { Fault } from '../../db/rules/paths.ts'
import { checkTemplate, compileTemplate, type Rendered } from '../../db/rules/templates.ts'
import { type ProblemError, toPointer } from '../http/problem.ts'
import { findUnstorable } from '../http/storable.ts'
import { invalidRequest, problemAt } from '../http/validation.ts'
import { type JobRequest, newJob } from '../jobs/new-job.ts'
import { ROOTS } from './event.ts'

/** Ten years. */
const inSeconds = z.number().positive().max(315_360_000).optional()

/** What a template is to make: a job, or one whose times are so far from now. */
const templateJob = z
  .strictObject({ ...newJob.shape, run_in_seconds: inSeconds, deadline_in_seconds: inSeconds })
  .refine(({ run_at, run_in_seconds }) => run_at === undefined || run_in_seconds === undefined, {
    path: ['run_in_seconds'],
    message: 'cannot be given beside run_at',
  })
  .refine(
    ({ deadline, deadline_in_seconds }) => deadline === undefined || deadline_in_seconds === undefined,
    {
      path: ['deadline_in_seconds'],
      message: 'cannot be given beside deadline',
    },
  )

export type TemplateJob = z.output<typeof templateJob>

const FIELDS: Record<string, z.ZodType> = templateJob.shape
const REQUIRED = ['name', 'type', 'payload']

/** Empty if the value can be read as a template. Whether it becomes a job is for `misfitsOf`, and for events to show. */
export const checkJobTemplate = (template: unknown): Fault[] =>
  isPlainObject(template)
    ? checkTemplate(template, ROOTS)
    : [{ path: [], message: 'must be a JSON object: a template of a job' }]

/** What of a template does not fit a job whatever the event is, or where defaults stand in. */
export const misfitsOf = (template: Record<string, unknown>): Fault[] => {
  const missing = REQUIRED.filter((field) => !Object.hasOwn(template, field))
  return [
    ...missing.map((field): Fault => ({ path: [field], message: 'is required' })),
    ...Object.entries(template).flatMap(([field, value]) => checkField(field, value)),
  ]
}

/** What does not depend on the event, and defaults, can be checked at once. */
const checkField = (field: string, value: unknown): Fault[] => {
  const schema = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined
  if (!schema) return [{ path: [field], message: 'is not a known field of a job' }]
  const rendered = compileTemplate(value)({})
  if (!rendered.ok || rendered.value === null) return []
  const issues = schema.safeParse(rendered.value).error?.issues ?? []
  return issues.map(({ path, message }) => ({
    path: [field, ...path.map((key) => (typeof key === 'number' ? key : String(key)))],
    message,
  }))
}

/** As a job that is sent to `POST /jobs`. */
const MAX_DEPTH = 32
const MAX_KIB = 256

/** What a template has made, as a job; or why it is none. */
export const toTemplateJob = (rendered: Rendered): TemplateJob | ProblemError => {
  if (!rendered.ok) return problemAt('invalid-request', rendered.faults.map(toReason))
  const parsed = templateJob.safeParse(withoutNulls(rendered.value))
  if (!parsed.success) return invalidRequest('body', parsed.error.issues)
  const unstorable = findUnstorable(parsed.data, MAX_DEPTH)
  if (unstorable) return problemAt('invalid-request', [{ in: 'body', ...unstorable }])
  if (JSON.stringify(parsed.data).length > MAX_KIB * 1024) {
    return problemAt('invalid-request', [
      { in: 'body', pointer: '#', detail: `is a job of more than ${MAX_KIB} KiB` },
    ])
  }
  return parsed.data
}

const toReason = ({ path, message }: Fault) => ({
  in: 'body' as const,
  pointer: toPointer(path),
  detail: message,
})

/** A field that becomes null is left out: `"deadline": "$.due ?? null"`. */
const withoutNulls = (value: unknown): unknown =>
  isPlainObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null))
    : value

/** With the times that are meant. */
export const resolveTimes = (
  { run_in_seconds, deadline_in_seconds, ...job }: TemplateJob,
  nowMs: number,
): JobRequest => ({
  ...job,
  ...(run_in_seconds !== undefined && { run_at: after(nowMs, run_in_seconds) }),
  ...(deadline_in_seconds !== undefined && { deadline: after(nowMs, deadline_in_seconds) }),
})

const after = (nowMs: number, seconds: number): string => new Date(nowMs + seconds * 1000).toISOString()
