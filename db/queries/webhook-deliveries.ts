import type { NewestFirst, Query } from '../query.ts'

export const DELIVERY_STATUSES = ['accepted', 'duplicate', 'filtered', 'rejected', 'quarantined'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

export type DeliverySummaryRow = {
  id: string
  source_id: string
  received_at: string
  status: DeliveryStatus
  reason: string | null
  event_id: string | null
  event_type: string | null
  job_id: string | null
  replay_of: string | null
}

export type DeliveryRow = DeliverySummaryRow & { headers: Record<string, string>; body: unknown }

/** Newest first. Planned for its values on every request, it goes by the index of the source or by that of its status. */
export const listDeliveries = (
  page: NewestFirst & { orgId: string; sourceId: string; status: DeliveryStatus | null },
): Query<DeliverySummaryRow> => ({
  name: 'list-deliveries',
  text: `
    select id, source_id, received_at, status, reason, event_id, event_type, job_id, replay_of
    from smartqueue.webhook_deliveries
    where org_id = $1::uuid
      and source_id = $2::uuid
      and id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and ($5::text is null or status = $5::text)
    order by id desc
    limit $4::int`,
  values: [page.orgId, page.sourceId, page.before, page.limit, page.status],
})

export const getDelivery = (orgId: string, id: string): Query<DeliveryRow> => ({
  name: 'get-delivery',
  text: `
    select id, source_id, received_at, status, reason, event_id, event_type, job_id, replay_of, headers, body
    from smartqueue.webhook_deliveries
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, id],
})
