import type { Query } from '../query.ts'
import { utf8Bytes } from '../rules/utf8-bytes.ts'
import { uuidV7Floor, uuidV7Ms } from '../rules/uuid-v7.ts'
import type { DeliveryStatus } from './webhook-deliveries.ts'

/** What the journal keeps of a delivery, whatever became of it. `headers` and `body` are JSON. */
export type DeliveryRecord = {
  orgId: string
  id: string
  sourceId: string
  eventId: string | null
  eventType: string | null
  replayOf: string | null
  headers: string
  body: string | null
}

/** Under which keys the job that it wants may have been submitted before. */
export type DeliveryKeys = {
  /** Of the event: whatever the job. */
  event: { key: string; keepSeconds: number } | null
  /** Of the job itself: only of the same. */
  job: { key: string; bodyHash: string } | null
}

export type Journalled = { status: DeliveryStatus; job_id: string | null }

/**
 * Comes after the statement that submits the job `jobId`, in one transaction, and finds out what became of it:
 * `accepted` if it was stored, a `duplicate` if there is one under its keys, and else what `otherwise` says. Without
 * that nothing is journalled, and no row answered: the submission was refused, and the caller has been told why.
 *
 * What is kept counts for the payload bytes of the day. Once these are used up, headers and body are left out; what
 * would be quarantined is not journalled then, and no row answered: it would be lost in there.
 */
export const journalDelivery = (
  record: DeliveryRecord,
  {
    jobId,
    keys,
    otherwise,
  }: {
    jobId: string | null
    keys: DeliveryKeys
    otherwise: { status: 'filtered' | 'quarantined'; reason: string | null } | null
  },
): Query<Journalled> => ({
  name: 'journal-delivery',
  text: `
    with made as materialized (
      select id
      from smartqueue.jobs
      where org_id = $1::uuid
        and id = $9::uuid
    ),
    earlier as materialized (
      select job_ids[1] as job_id
      from smartqueue.idempotency_keys
      where org_id = $1::uuid
        -- As of the beginning of the transaction: what kept the job from being stored a moment ago is found.
        and expires_at > now()
        and key = any (array[$10::text, $12::text])
        and (key = $10::text or body_hash = decode($13::text, 'hex'))
        and not exists (select from made)
      -- That of the event says more.
      order by key = $10::text desc
      limit 1
    ),
    outcome as (
      select 'accepted' as status, null as reason, id as job_id
      from made
      union all
      select 'duplicate', null, job_id
      from earlier
      union all
      select $14::text, $15::text, null
      where $14::text is not null
        and not exists (select from made)
        and not exists (select from earlier)
    ),
    charge as materialized (
      select smartqueue.charge_quotas($1::uuid, 0, $16::bigint) is null as is_charged
      where exists (select from outcome)
    ),
    -- The key of the job may be good for less time than that of the event: the event stays a duplicate after that.
    remembered as (
      insert into smartqueue.idempotency_keys as k (org_id, key, body_hash, job_ids, created_at, expires_at)
      select
        $1::uuid, $10::text, '', array[job_id], clock_timestamp(),
        clock_timestamp() + $11::integer * interval '1 second'
      from earlier
      where $10::text is not null
        -- Keys are written by whoever has locked the quotas, here as elsewhere: no two wait for each other.
        and (select count(*) from charge) >= 0
      on conflict on constraint idempotency_keys_pkey do update
      set job_ids = excluded.job_ids, created_at = excluded.created_at, expires_at = excluded.expires_at
      where k.expires_at <= clock_timestamp()
    )
    insert into smartqueue.webhook_deliveries (
      org_id, id, source_id, event_id, event_type, replay_of, headers, body, status, reason, job_id
    )
    select
      $1::uuid, $2::uuid, $3::uuid, $4::text, $5::text, $6::uuid,
      case when c.is_charged then $7::jsonb else '{}' end,
      case when c.is_charged then $8::jsonb end,
      o.status, o.reason, o.job_id
    from outcome o
    cross join charge c
    where o.status <> 'quarantined'
      or c.is_charged
    returning
      status, job_id,
      case
        when replay_of is not null then smartqueue.audit(
          $1::uuid, 'webhook_delivery.replayed',
          jsonb_build_object(
            'delivery_id', replay_of, 'source_id', source_id, 'as', id, 'status', status, 'job_id', job_id
          )
        )
      end as audited`,
  values: [
    ...recordValues(record),
    jobId,
    keys.event?.key ?? null,
    keys.event?.keepSeconds ?? null,
    keys.job?.key ?? null,
    keys.job?.bodyHash ?? null,
    otherwise?.status ?? null,
    otherwise?.reason ?? null,
    utf8Bytes(record.headers) + utf8Bytes(record.body ?? ''),
  ],
})

const recordValues = (record: DeliveryRecord) => [
  record.orgId,
  record.id,
  record.sourceId,
  record.eventId,
  record.eventType,
  record.replayOf,
  record.headers,
  record.body,
]

/** Of one source: nobody without its secret fills the journal. */
export const REJECTIONS_PER_MINUTE = 60

/** Comes after `takeTurns`, in one transaction. No row: the journal has as many of this minute as it takes. */
export const journalRejection = (record: DeliveryRecord, reason: string): Query<{ id: string }> => ({
  name: 'journal-rejection',
  text: `
    insert into smartqueue.webhook_deliveries (
      org_id, id, source_id, event_id, event_type, replay_of, headers, body, status, reason, job_id
    )
    select
      $1::uuid, $2::uuid, $3::uuid, $4::text, $5::text, $6::uuid, $7::jsonb, $8::jsonb, 'rejected', $9::text, null
    where (
      select count(*)
      from (
        select
        from smartqueue.webhook_deliveries
        where source_id = $3::uuid
          and status = 'rejected'
          and id > $10::uuid
        limit $11::int
      ) recent
    ) < $11::int
    returning id`,
  values: [...recordValues(record), reason, uuidV7Floor(uuidV7Ms(record.id) - 60_000), REJECTIONS_PER_MINUTE],
})
