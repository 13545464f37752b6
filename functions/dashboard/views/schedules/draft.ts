import type { Schedule } from '../../api/answers.ts'
import { readJson, toJsonText } from '../../ui/json-text.ts'

/** A schedule as it stands in the form: all of it text. */
export type Draft = {
  name: string
  cron: string
  timezone: string
  catchUp: Schedule['catch_up']
  jobName: string
  type: string
  priority: Schedule['job']['priority']
  payload: string
  tags: string
  timeoutSeconds: string
  deadlineSeconds: string
  maxAttempts: string
  /** What the form does not show, and a change must not lose: the API replaces the job as a whole. */
  kept: Partial<Pick<Schedule['job'], 'resources' | 'retry' | 'callback_url' | 'fairness_key'>>
}

/** Where the API says what is wrong with which field. */
export const FIELDS = [
  ...['/name', '/cron', '/timezone', '/catch_up', '/job/name', '/job/type', '/job/priority', '/job/payload'],
  ...['/job/tags', '/job/timeout_seconds', '/job/deadline_seconds', '/job/retry/max_attempts'],
]

export const emptyDraft = (timezone: string): Draft => ({
  ...{ name: '', cron: '30 6 * * MON-FRI', timezone, catchUp: 'one' },
  ...{ jobName: '', type: 'http', priority: 'normal' },
  payload: toJsonText({ method: 'POST', url: 'https://example.com/report' }),
  ...{ tags: '', timeoutSeconds: '', deadlineSeconds: '', maxAttempts: '3', kept: {} },
})

export const draftOf = ({ name, cron, timezone, catch_up, job }: Schedule): Draft => ({
  ...{ name, cron, timezone, catchUp: catch_up },
  jobName: job.name,
  type: job.type,
  priority: job.priority,
  payload: toJsonText(job.payload),
  tags: job.tags.join(', '),
  timeoutSeconds: String(job.timeout_seconds ?? ''),
  deadlineSeconds: String(job.deadline_seconds ?? ''),
  maxAttempts: String(job.retry.max_attempts),
  kept: job,
})

/** What is sent. A payload that is no JSON is refused here, at its field. */
export const requestOf = (draft: Draft) => ({
  name: draft.name.trim(),
  cron: draft.cron.trim(),
  timezone: draft.timezone.trim(),
  catch_up: draft.catchUp,
  job: {
    ...(draft.jobName.trim() && { name: draft.jobName.trim() }),
    type: draft.type.trim(),
    priority: draft.priority,
    payload: readJson(draft.payload, '/job/payload'),
    tags: draft.tags
      .split(',')
      .map((tag) => tag.trim())
      .filter(Boolean),
    ...numberAt('timeout_seconds', draft.timeoutSeconds),
    ...numberAt('deadline_seconds', draft.deadlineSeconds),
    retry: { ...draft.kept.retry, ...numberAt('max_attempts', draft.maxAttempts) },
    ...(draft.kept.resources && { resources: draft.kept.resources }),
    ...(draft.kept.callback_url && { callback_url: draft.kept.callback_url }),
    ...(draft.kept.fairness_key && { fairness_key: draft.kept.fairness_key }),
  },
})

const numberAt = (field: string, text: string): Record<string, number> =>
  text.trim() === '' ? {} : { [field]: Number(text) }
