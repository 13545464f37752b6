import type { z } from '@hono/zod-openapi'
import type { DeliveryRow, DeliverySummaryRow } from '../../db/queries/webhook-deliveries.ts'
import type { WebhookSourceRow } from '../../db/queries/webhook-sources.ts'
import type { delivery, deliverySummary, receipt, source } from './schemas.ts'
import { type HmacSettings, schemeOf } from './schemes.ts'
import type { Outcome } from './store-delivery.ts'
import { viewScheme } from './verification.ts'

/** Rows as the API shows them. `origin` is that of the request: what reaches us so, reaches us. */
export const viewSource = (row: WebhookSourceRow, origin: string): z.output<typeof source> => ({
  id: row.id,
  name: row.name,
  scheme: row.scheme,
  url: `${origin}/hooks/${row.id}`,
  enabled: row.enabled,
  filter: row.filter as Record<string, unknown> | null,
  template: row.template as Record<string, unknown>,
  verification: viewScheme(schemeOf(row.scheme, row.verification as HmacSettings)),
  secret_hint: `…${row.secret_hint}`,
  previous_expires_at: row.previous_expires_at,
  created_by: row.created_by,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

export const viewSummary = (row: DeliverySummaryRow): z.output<typeof deliverySummary> => ({
  id: row.id,
  source_id: row.source_id,
  received_at: row.received_at,
  status: row.status,
  reason: row.reason,
  event_id: row.event_id,
  event_type: row.event_type,
  job_id: row.job_id,
  replay_of: row.replay_of,
})

export const viewDelivery = (row: DeliveryRow): z.output<typeof delivery> => ({
  ...viewSummary(row),
  headers: row.headers,
  body: row.body,
})

export const viewOutcome = (outcome: Outcome, deliveryId: string): z.output<typeof receipt> => ({
  delivery_id: deliveryId,
  status: outcome.status,
  job_id: 'jobId' in outcome ? outcome.jobId : null,
  reason: 'reason' in outcome ? outcome.reason : null,
})
