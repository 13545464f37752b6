import { isPlainObject } from '../../db/rules/json-values.ts'
import { compileTemplate } from '../../db/rules/templates.ts'
import type { JobTypes } from '../jobs/job-types.ts'
import { checkPayloads, checkTypes } from '../jobs/payloads.ts'

/**
 * Refuses a template whose every job would be quarantined: of a type that no worker handles, or with a payload that does not
 * fit it whatever the event is.
 */
export const checkFixedJob = async (jobTypes: JobTypes, template: Record<string, unknown>): Promise<void> => {
  const type = fixed(template.type)
  if (typeof type !== 'string') return
  const payload = fixed(template.payload)
  if (isPlainObject(payload)) await checkPayloads(jobTypes, [{ type, payload }], AT_TEMPLATE)
  else await checkTypes(jobTypes, [{ type }], AT_TEMPLATE)
}

const AT_TEMPLATE = () => ['template']

/** What it becomes of an event that has nothing: constants and defaults. Undefined if it needs something of the event. */
const fixed = (template: unknown): unknown => {
  const rendered = compileTemplate(template)({})
  return rendered.ok ? rendered.value : undefined
}
