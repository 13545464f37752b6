import type { Page, Query } from '../query.ts'
import type { NewJob, TriggeredBy } from '../queue/job-fields.ts'
import { CALLBACK_TYPE, type CallbackBody, type CallbackEvent } from '../rules/callbacks.ts'
import { rankTerms } from '../rules/priority.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import { uuidV7 } from '../rules/uuid-v7.ts'
import type { JobSummaryRow } from './jobs.ts'

/** Who is to be told what; `triggeredBy` null: somebody tries an endpoint out. */
export type Callback = {
  url: string
  body: CallbackBody
  triggeredBy: TriggeredBy | null
  /** Of the job that it tells of, or of the request that tries the endpoint out. */
  traceparent: string | null
  /** Of the job that it tells of, whose share of the workers it uses. */
  fairnessKey: string | null
}

/** A receiver may be down for a day on average, for 53 hours at most. */
const RETRY = { max_attempts: 60, initial_delay_seconds: 5, backoff_multiplier: 3 }
const TIMEOUT_SECONDS = 20

/** Of a job; hosts may have 253. */
const MAX_NAME_CHARACTERS = 200

/** The job that tells a URL of an event. */
export const newCallback = ({ url, body, triggeredBy, traceparent, fairnessKey }: Callback): NewJob => ({
  id: uuidV7(),
  type: CALLBACK_TYPE,
  // Not the whole address: what follows the host may be secret, and would make a series of each.
  name: `${body.type} → ${URL.parse(url)?.host ?? 'nowhere'}`.slice(0, MAX_NAME_CHARACTERS),
  payload: { url, event: body.type, body },
  priority: 'normal',
  tags: [],
  timeout_seconds: TIMEOUT_SECONDS,
  ...RETRY,
  ...DEFAULT_RESOURCES,
  ...rankTerms('normal', TIMEOUT_SECONDS),
  run_at: null,
  deadline: null,
  depends_on: [],
  on_parent_failure: 'fail',
  callback_url: null,
  fairness_key: fairnessKey,
  triggered_by: triggeredBy,
  traceparent,
  prediction: null,
})

/** The columns are null in the one row that a job of which nobody was told answers; no row means no such job. */
export type JobCallbackRow = { id: string | null; event: CallbackEvent; url: string } & Pick<
  JobSummaryRow,
  'status' | 'attempts' | 'error' | 'created_at' | 'finished_at'
>

/** Those that told of a job, oldest first. */
export const listJobCallbacks = (page: Page & { orgId: string; jobId: string }): Query<JobCallbackRow> => ({
  name: 'list-job-callbacks',
  text: `
    select c.id, c.event, c.url, c.status, c.attempts, c.error, c.created_at, c.finished_at
    from smartqueue.jobs j
    left join lateral (
      select o.*
      from smartqueue.callbacks_of_job(j.org_id, j.id) as told (id)
      cross join lateral (
        select
          id, triggered_by ->> 'event' as event, payload ->> 'url' as url, status, attempts, error, created_at,
          finished_at
        from smartqueue.job_overview
        where org_id = j.org_id
          and id = told.id
        offset 0
      ) o
      where $3::uuid is null or told.id > $3::uuid
      order by o.id
      limit $4::int
    ) c on true
    where j.org_id = $1::uuid
      and j.id = $2::uuid
    order by c.id`,
  values: [page.orgId, page.jobId, page.after, page.limit],
})
