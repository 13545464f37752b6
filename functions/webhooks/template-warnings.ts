import { isPlainObject } from '../../db/rules/json-values.ts'
import { compileTemplate } from '../../db/rules/templates.ts'
import { ProblemError, toPointer } from '../http/problem.ts'
import type { JobTypes } from '../jobs/job-types.ts'
import { checkPayloads, checkTypes } from '../jobs/payloads.ts'
import { misfitsOf } from './job-template.ts'

export type TemplateWarning = { pointer: string; detail: string }

/**
 * What would put deliveries into quarantine. It is told and not refused: a worker for the type may start later, and what is
 * in quarantine can be replayed.
 */
export const warningsOf = async (
  jobTypes: JobTypes,
  template: Record<string, unknown>,
): Promise<TemplateWarning[]> => {
  const misfits = misfitsOf(template).map(({ path, message }) => ({
    pointer: toPointer(['template', ...path]),
    detail: message,
  }))
  return misfits.length > 0 ? misfits : fixedMisfits(jobTypes, template)
}

/** A type that no worker handles, and a payload that does not fit it whatever the event is. */
const fixedMisfits = async (
  jobTypes: JobTypes,
  template: Record<string, unknown>,
): Promise<TemplateWarning[]> => {
  const type = fixed(template.type)
  if (typeof type !== 'string') return []
  const payload = fixed(template.payload)
  try {
    if (isPlainObject(payload)) await checkPayloads(jobTypes, [{ type, payload }], AT_TEMPLATE)
    else await checkTypes(jobTypes, [{ type }], AT_TEMPLATE)
    return []
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    const { slug, message, errors } = error
    return errors.map(({ pointer, detail }) => ({
      pointer,
      detail: slug === 'unknown-job-type' ? message : detail,
    }))
  }
}

const AT_TEMPLATE = () => ['template']

/** What it becomes of an event that has nothing: constants and defaults. Undefined if it needs something of the event. */
const fixed = (template: unknown): unknown => {
  const rendered = compileTemplate(template)({})
  return rendered.ok ? rendered.value : undefined
}
