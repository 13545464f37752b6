import { type Condition, compileCondition } from '../../db/rules/conditions.ts'
import type { Documents } from '../../db/rules/paths.ts'
import { compileTemplate, type Rendered } from '../../db/rules/templates.ts'
import { ProblemError, type ProblemReason } from '../http/problem.ts'
import { type KeyedPart, keyedParts } from '../jobs/idempotency.ts'
import type { JobTypes } from '../jobs/job-types.ts'
import type { JobRequest } from '../jobs/new-job.ts'
import { checkPayloads } from '../jobs/payloads.ts'
import type { Body } from './event.ts'
import { resolveTimes, toTemplateJob } from './job-template.ts'

/** What is to become of an event. */
export type Plan =
  | { readonly kind: 'job'; readonly request: JobRequest; readonly key: KeyedPart | null }
  | { readonly kind: 'filtered' }
  | Quarantine

export type Quarantine = {
  readonly kind: 'quarantined'
  readonly reason: string
  readonly errors: readonly ProblemReason[]
}

/** A filter and a template, read once. */
export type Rules = {
  readonly accepts: (documents: Documents) => boolean
  readonly render: (documents: Documents) => Rendered
}

export const readRules = (filter: Condition | null, template: unknown): Rules => ({
  accepts: filter === null ? () => true : compileCondition(filter),
  render: compileTemplate(template),
})

/** Filters, renders and checks: all that can be said before the job is stored. Relative times count from `nowMs`. */
export const planJob = async (
  jobTypes: JobTypes,
  rules: Rules,
  { body, documents, nowMs }: { body: Body; documents: Documents; nowMs: number },
): Promise<Plan> => {
  if (!body.ok) return { kind: 'quarantined', reason: body.reason, errors: [] }
  if (!rules.accepts(documents)) return { kind: 'filtered' }
  const made = toTemplateJob(rules.render(documents))
  if (made instanceof ProblemError) return quarantine(made)
  // As it was meant, and not as it was on the clock: sent again it is the same job.
  const [key = null] = await keyedParts([made], undefined, () => [])
  const request = resolveTimes(made, nowMs)
  try {
    await checkPayloads(jobTypes, [request], () => [])
  } catch (error) {
    if (error instanceof ProblemError) return quarantine(error)
    throw error
  }
  return { kind: 'job', request, key }
}

const SHOWN_REASONS = 5
const MAX_REASON = 1_000

/** With what does not fit, in words. */
export const quarantine = ({ slug, message, errors }: ProblemError): Quarantine => {
  const listed = errors.slice(0, SHOWN_REASONS).map(({ pointer, detail }) => `${pointer} ${detail}`)
  const more = errors.length > SHOWN_REASONS ? `; and ${errors.length - SHOWN_REASONS} more` : ''
  const words = slug === 'unknown-job-type' || listed.length === 0 ? message : listed.join('; ') + more
  return { kind: 'quarantined', reason: words.slice(0, MAX_REASON).toWellFormed(), errors }
}
