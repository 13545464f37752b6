import type { Query } from '../query.ts'

/**
 * `type` null pauses the whole queue of the organisation, independently of its types. Workers are notified by the same
 * commit and give back what they have not started.
 */
export const pauseQueue = (orgId: string, type: string | null): Query<never> => ({
  name: 'pause-queue',
  text: `
    with paused as (
      insert into smartqueue.pauses (org_id, type)
      values ($1::uuid, $2::text)
      on conflict on constraint pauses_once do nothing
      returning smartqueue.audit(org_id, 'queue.paused', jsonb_build_object('type', type))
    )
    select pg_notify('queue_paused', concat_ws('/', $1::uuid, $2::text))`,
  values: [orgId, type],
})

/** Answers the types that may have jobs to claim now. */
export const resumeQueue = (orgId: string, type: string | null): Query<{ type: string }> => ({
  name: 'resume-queue',
  text: `
    with resumed as (
      delete from smartqueue.pauses
      where org_id = $1::uuid
        and type is not distinct from $2::text
      returning type, smartqueue.audit(org_id, 'queue.resumed', jsonb_build_object('type', type))
    )
    select distinct s.type
    from resumed r
    join smartqueue.series s on s.org_id = $1::uuid and (r.type is null or s.type = r.type)`,
  values: [orgId, type],
})
