import type { Page, Query } from '../query.ts'

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

export type NewSource = Pick<
  WebhookSourceRow,
  'id' | 'name' | 'scheme' | 'filter' | 'template' | 'enabled'
> & {
  verification: object
  secret: string
  created_by: string
}

/** No row: the organisation has too many. */
export const createSource = (orgId: string, source: NewSource): Query<WebhookSourceRow> => ({
  name: 'create-webhook-source',
  text: `
    with created as (
      insert into smartqueue.webhook_sources as w (
        org_id, id, name, scheme, verification, secret, filter, template, enabled, created_by
      )
      select
        $1::uuid, n.id, n.name, n.scheme, n.verification, n.secret, n.filter, n.template, n.enabled, n.created_by
      from jsonb_populate_record(null::smartqueue.webhook_sources, $2::jsonb) n
      where (select count(*) from smartqueue.webhook_sources where org_id = $1::uuid) < $3::int
      returning w as source
    )
    select s.*
    from created
    cross join smartqueue.source_view(source) s
    cross join smartqueue.audit($1::uuid, 'webhook_source.created', smartqueue.source_target(source))`,
  values: [orgId, JSON.stringify(source), MAX_SOURCES],
})

/** Oldest first. */
export const listSources = (page: Page & { orgId: string }): Query<WebhookSourceRow> => ({
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
  [Field in 'name' | 'verification' | 'filter' | 'template' | 'enabled']?: NewSource[Field] | undefined
}

/** No row: there is no such source. */
export const changeSource = (orgId: string, id: string, change: SourceChange): Query<WebhookSourceRow> => ({
  name: 'change-webhook-source',
  text: `
    with changed as (
      update smartqueue.webhook_sources w
      set
        (name, verification, filter, template, enabled) = (
          select n.name, n.verification, n.filter, n.template, n.enabled
          from jsonb_populate_record(w, $3::jsonb) n
        ),
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
      smartqueue.source_target(source) || jsonb_build_object('fields', array(select jsonb_object_keys($3::jsonb)))
    )`,
  values: [orgId, id, JSON.stringify(change)],
})

/**
 * The current secret stays valid beside the new one for so long; one before that ends now. No row: there is no such
 * source, or it has this secret already.
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
    delete from smartqueue.webhook_sources w
    where org_id = $1::uuid
      and id = $2::uuid
    returning id, smartqueue.audit($1::uuid, 'webhook_source.deleted', smartqueue.source_target(w)) as audited`,
  values: [orgId, id],
})

/** What it takes to receive a delivery, secrets included. */
export type ReceivingSourceRow = Omit<NewSource, 'created_by'> & {
  org_id: string
  /** A bigint is a text. */
  version: string
  previous_secret: string | null
  previous_expires_at: string | null
}

/** The source whose address a delivery was sent to, or one of an organisation. */
export const findReceivingSource = (id: string, orgId: string | null): Query<ReceivingSourceRow> => ({
  name: 'find-receiving-source',
  text: `
    select
      org_id, id, version::text, name, scheme, verification, secret, previous_secret, previous_expires_at, filter,
      template, enabled
    from smartqueue.receiving_source($1::uuid)
    where $2::uuid is null or org_id = $2::uuid`,
  values: [id, orgId],
})
