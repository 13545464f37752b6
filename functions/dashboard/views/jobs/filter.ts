/** Which jobs the list shows, as it stands in the address and as the API takes it. */
import { isFinished, JOB_STATES, type JobState } from '../../../../db/rules/job-states.ts'
import { PRIORITIES, type Priority } from '../../../../db/rules/priority.ts'

export type JobFilter = {
  status?: JobState
  type?: string
  name?: string
  tag?: string
  priority?: Priority
  text?: string
}

/** What a filter looks at. */
type Filtered = {
  id: string
  name: string
  type: string
  status: JobState
  priority: Priority
  tags: readonly string[]
}

const oneOf = <Value extends string>(values: readonly Value[], given: string): Value | undefined =>
  values.find((value) => value === given)

/** What the API would not understand is left out: an old or mistyped address still shows jobs. */
export const filterOf = (query: URLSearchParams): JobFilter => {
  const given = (field: string): string => query.get(field)?.trim() ?? ''
  const fields = {
    status: oneOf(JOB_STATES, given('status')),
    type: given('type').slice(0, 64),
    name: given('name').slice(0, 200),
    tag: given('tag').slice(0, 64),
    priority: oneOf(PRIORITIES, given('priority')),
    text: given('text').slice(0, 200),
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value)) as JobFilter
}

export const isSet = (filter: JobFilter): boolean => Object.keys(filter).length > 0

/** Whether the API would list the job, by what an event says of it. */
export const fits = (filter: JobFilter, job: Filtered): boolean =>
  (filter.status === undefined || job.status === filter.status) &&
  (filter.type === undefined || job.type === filter.type) &&
  (filter.name === undefined || job.name === filter.name) &&
  (filter.tag === undefined || job.tags.includes(filter.tag)) &&
  (filter.priority === undefined || job.priority === filter.priority) &&
  (filter.text === undefined || fitsText(filter.text, job))

const fitsText = (text: string, { id, name, tags }: Filtered): boolean =>
  name.toLowerCase().includes(text.toLowerCase()) || tags.includes(text) || id === text.toLowerCase()

export type BulkAction = 'cancel' | 'retry'

/** What can be done with all that match: finished jobs are not cancelled, and only those that did not complete retried. */
export const actionsFor = (filter: JobFilter): BulkAction[] => {
  if (!isSet(filter)) return []
  const { status } = filter
  if (status === undefined) return ['cancel', 'retry']
  if (!isFinished(status)) return ['cancel']
  return status === 'completed' ? [] : ['retry']
}
