import type { Query } from '../query.ts'

export const WEBHOOK_SCHEMES = ['github', 'stripe', 'standard-webhooks', 'hmac'] as const
export type WebhookScheme = (typeof WEBHOOK_SCHEMES)[number]

/** As people see it: `source_view`. */
export type WebhookSourceRow = {
  id: string
  name: string
  scheme: WebhookScheme
  verification: Record<string, unknown>
  filter: unknown
  template: unknown
  enabled: boolean
  /** The end of the secret: enough to tell two apart. None of a short one: it would be a good part of it. */
  secret_hint: string
  /** Null: there is no second secret that is still good. */
  previous_expires_at: string | null
  created_by: string | null
  created_at: string
  updated_at: string
}

/** Of an organisation. */
export const MAX_SOURCES = 100

/** No row: the organisation has too many. */
export const createSource = (source: {
  id: string
  orgId: string
  userId: string
  name: string
  scheme: WebhookScheme
  verification: object
  secret: string
  filter: unknown
  template: unknown
  enabled: boolean
}): Query<WebhookSourceRow> => ({
  name: 'create-webhook-source',
  text: `
    with created as (
      insert into smartqueue.webhook_sources as w (
        org_id, id, name, scheme, verification, secret, filter, template, enabled, created_by
      )
      select
        $1::uuid, $2::uuid, $3::text, $4::text, $5::jsonb, $6::text, $7::jsonb, $8::jsonb, $9::boolean, $10::uuid
      where (select count(*) from smartqueue.webhook_sources where org_id = $1::uuid) < $11::int
      returning w as source
    )
    select s.*
    from created
    cross join smartqueue.source_view(source) s
    cross join smartqueue.audit($1::uuid, 'webhook_source.created', smartqueue.source_target(source))`,
  values: [
    ...[
      source.orgId,
      source.id,
      source.name,
      source.scheme,
      JSON.stringify(source.verification),
      source.secret,
    ],
    ...[
      jsonOrNull(source.filter),
      JSON.stringify(source.template),
      source.enabled,
      source.userId,
      MAX_SOURCES,
    ],
  ],
})

const jsonOrNull = (value: unknown): string | null =>
  value === null || value === undefined ? null : JSON.stringify(value)

/** Oldest first. */
export const listSources = (page: {
  orgId: string
  after: string | null
  limit: number
}): Query<WebhookSourceRow> => ({
  name: 'list-webhook-sources',
  text: `
    select s.*
    from smartqueue.webhook_sources w
    cross join smartqueue.source_view(w) s
    where w.org_id = $1::uuid
      and ($2::uuid is null or w.id > $2::uuid)
    order by w.id
    limit $3::int`,
  values: [page.orgId, page.after, page.limit],
})

export const getSource = (orgId: string, id: string): Query<WebhookSourceRow> => ({
  name: 'get-webhook-source',
  text: `
    select s.*
    from smartqueue.webhook_sources w
    cross join smartqueue.source_view(w) s
    where w.org_id = $1::uuid
      and w.id = $2::uuid`,
  values: [orgId, id],
})

/** What is not named stays. A `filter` of null is none. */
export type SourceChange = {
  name?: string | undefined
  verification?: object | undefined
  filter?: unknown
  template?: unknown
  enabled?: boolean | undefined
}

/** No row: there is no such source. */
export const changeSource = (
  orgId: string,
  id: string,
  { name, verification, filter, template, enabled }: SourceChange,
): Query<WebhookSourceRow> => ({
  name: 'change-webhook-source',
  text: `
    with changed as (
      update smartqueue.webhook_sources w
      set
        name = coalesce($3::text, name),
        verification = coalesce($4::jsonb, verification),
        filter = case when $5::boolean then $6::jsonb else filter end,
        template = coalesce($7::jsonb, template),
        enabled = coalesce($8::boolean, enabled),
        version = version + 1,
        updated_at = now()
      where org_id = $1::uuid
        and id = $2::uuid
      returning w as source
    )
    select s.*
    from changed
    cross join smartqueue.source_view(source) s
    cross join smartqueue.audit(
      $1::uuid, 'webhook_source.changed',
      smartqueue.source_target(source) || jsonb_build_object('fields', $9::text[])
    )`,
  values: [
    ...[orgId, id, name ?? null, jsonOrNull(verification), filter !== undefined, jsonOrNull(filter)],
    ...[jsonOrNull(template), enabled ?? null],
    Object.entries({ name, verification, filter, template, enabled }).flatMap(([field, value]) =>
      value === undefined ? [] : [field],
    ),
  ],
})

/**
 * The secret so far stays good beside the new one for so long; one before that ends now. No row: there is no such source, or it
 * has this secret already.
 */
export const rotateSecret = (rotation: {
  orgId: string
  id: string
  secret: string
  keepPreviousSeconds: number
}): Query<WebhookSourceRow> => ({
  name: 'rotate-webhook-secret',
  text: `
    with rotated as (
      update smartqueue.webhook_sources w
      set
        previous_secret = case when $4::integer > 0 then secret end,
        previous_expires_at = case when $4::integer > 0 then now() + $4::integer * interval '1 second' end,
        secret = $3::text,
        version = version + 1,
        updated_at = now()
      where org_id = $1::uuid
        and id = $2::uuid
        and secret <> $3::text
      returning w as source
    )
    select s.*
    from rotated
    cross join smartqueue.source_view(source) s
    cross join smartqueue.audit(
      $1::uuid, 'webhook_source.rotated',
      smartqueue.source_target(source) || jsonb_build_object('keep_previous_seconds', $4::integer)
    )`,
  values: [rotation.orgId, rotation.id, rotation.secret, rotation.keepPreviousSeconds],
})

/** No row: there is no such source. Its journal stays until it is too old. */
export const deleteSource = (orgId: string, id: string): Query<{ id: string }> => ({
  name: 'delete-webhook-source',
  text: `
    with deleted as (
      delete from smartqueue.webhook_sources w
      where org_id = $1::uuid
        and id = $2::uuid
      returning id, w as source
    )
    select id
    from deleted
    cross join smartqueue.audit($1::uuid, 'webhook_source.deleted', smartqueue.source_target(source))`,
  values: [orgId, id],
})

/** What it takes to receive a delivery, secrets included. */
export type ReceivingSourceRow = {
  org_id: string
  id: string
  /** A bigint is a text. */
  version: string
  name: string
  scheme: WebhookScheme
  verification: Record<string, unknown>
  secret: string
  previous_secret: string | null
  previous_expires_at: string | null
  filter: unknown
  template: unknown
  enabled: boolean
}

/** The source whose address a delivery was sent to. */
export const findReceivingSource = (id: string): Query<ReceivingSourceRow> => ({
  name: 'find-receiving-source',
  text: `
    select
      org_id, id, version::text, name, scheme, verification, secret, previous_secret, previous_expires_at, filter,
      template, enabled
    from smartqueue.receiving_source($1::uuid)`,
  values: [id],
})

/** The same of the open organisation. */
export const getReceivingSource = (orgId: string, id: string): Query<ReceivingSourceRow> => ({
  name: 'get-receiving-source',
  text: `
    select
      org_id, id, version::text, name, scheme, verification, secret, previous_secret, previous_expires_at, filter,
      template, enabled
    from smartqueue.webhook_sources
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, id],
})
