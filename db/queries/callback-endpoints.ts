import type { Page, Query } from '../query.ts'
import type { CallbackEvent } from '../rules/callbacks.ts'

export type EndpointRow = {
  id: string
  url: string
  events: CallbackEvent[]
  disabled_at: string | null
  disabled_reason: string | null
  created_by: string | null
  created_at: string
  updated_at: string
}

/** Of an organisation, that are told of all its jobs. */
export const MAX_ENDPOINTS = 20

/** Without an id: there was no room for it, or the URL is an endpoint already. */
export type CreatedEndpoint = EndpointRow | { id: null; has_room: boolean }

/** A URL that is only kept because it is disabled becomes an endpoint and is enabled. */
export const createEndpoint = (endpoint: {
  id: string
  orgId: string
  userId: string
  url: string
  events: readonly CallbackEvent[]
}): Query<CreatedEndpoint> => ({
  name: 'create-callback-endpoint',
  text: `
    with room as materialized (
      select count(*) < $6::int as has_room
      from smartqueue.callback_endpoints
      where org_id = $1::uuid
        and events <> '{}'
    ),
    created as (
      insert into smartqueue.callback_endpoints as e (org_id, id, url, events, created_by)
      select $1::uuid, $2::uuid, $4::text, $5::text[], $3::uuid
      from room
      where has_room
      on conflict on constraint callback_endpoints_url do update
      set
        events = excluded.events, disabled_at = null, disabled_reason = null, created_by = excluded.created_by,
        created_at = now(), updated_at = now()
      where e.events = '{}'
      returning
        e.id, e.url, e.events, e.disabled_at, e.disabled_reason, e.created_by, e.created_at, e.updated_at,
        smartqueue.audit($1::uuid, 'callback_endpoint.created', smartqueue.endpoint_target(e))
    )
    select room.has_room, id, url, events, disabled_at, disabled_reason, created_by, created_at, updated_at
    from room
    left join created on true`,
  values: [endpoint.orgId, endpoint.id, endpoint.userId, endpoint.url, endpoint.events, MAX_ENDPOINTS],
})

/** Oldest first. */
export const listEndpoints = (page: Page & { orgId: string }): Query<EndpointRow> => ({
  name: 'list-callback-endpoints',
  text: `
    select id, url, events, disabled_at, disabled_reason, created_by, created_at, updated_at
    from smartqueue.callback_endpoints
    where org_id = $1::uuid
      and ($2::uuid is null or id > $2::uuid)
    order by id
    limit $3::int`,
  values: [page.orgId, page.after, page.limit],
})

export const getEndpoint = (orgId: string, id: string): Query<EndpointRow> => ({
  name: 'get-callback-endpoint',
  text: `
    select id, url, events, disabled_at, disabled_reason, created_by, created_at, updated_at
    from smartqueue.callback_endpoints
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, id],
})

/** The SQLSTATE of a URL that another endpoint has. */
export const URL_TAKEN = '23505'

/** Null leaves a field as it is. No row: no such endpoint, or no room for one more with events. */
export const changeEndpoint = (change: {
  id: string
  orgId: string
  url: string | null
  events: readonly CallbackEvent[] | null
  disabled: boolean | null
}): Query<EndpointRow> => ({
  name: 'change-callback-endpoint',
  text: `
    update smartqueue.callback_endpoints e
    set
      url = coalesce($3::text, url),
      events = coalesce($4::text[], events),
      disabled_at = case
        when $5::boolean is null then disabled_at
        when $5::boolean then coalesce(disabled_at, now())
      end,
      disabled_reason = case
        when $5::boolean is null then disabled_reason
        when $5::boolean then coalesce(disabled_reason, 'by hand')
      end,
      updated_at = now()
    where org_id = $1::uuid
      and id = $2::uuid
      and (
        $4::text[] is null
        or events <> '{}'
        or (select count(*) from smartqueue.callback_endpoints where org_id = $1::uuid and events <> '{}') < $6::int
      )
    returning
      id, url, events, disabled_at, disabled_reason, created_by, created_at, updated_at,
      smartqueue.audit(
        $1::uuid, 'callback_endpoint.changed',
        smartqueue.endpoint_target(e) || jsonb_build_object('disabled', disabled_at is not null)
      ) as audited`,
  values: [change.orgId, change.id, change.url, change.events, change.disabled, MAX_ENDPOINTS],
})

/** No row: there is no such endpoint. */
export const deleteEndpoint = (orgId: string, id: string): Query<{ id: string }> => ({
  name: 'delete-callback-endpoint',
  text: `
    delete from smartqueue.callback_endpoints e
    where org_id = $1::uuid
      and id = $2::uuid
    returning id, smartqueue.audit($1::uuid, 'callback_endpoint.deleted', smartqueue.endpoint_target(e)) as audited`,
  values: [orgId, id],
})

export type CallbackSecretRow = { created_at: string; previous_expires_at: string | null }

/** No row: there is none yet. `hint`: its last characters, to tell which one a receiver has. */
export const getCallbackSecret = (orgId: string): Query<CallbackSecretRow & { hint: string }> => ({
  name: 'get-callback-secret',
  text: `
    select
      right(rtrim(secret, '='), 4) as hint, created_at,
      case when previous_expires_at > now() then previous_expires_at end as previous_expires_at
    from smartqueue.callback_secrets
    where org_id = $1::uuid`,
  values: [orgId],
})

/** Makes a new one, and lets the one before sign beside it for so long. One that was before that ends at once. */
export const rotateCallbackSecret = (
  orgId: string,
  keepPreviousSeconds: number,
): Query<CallbackSecretRow & { secret: string }> => ({
  name: 'rotate-callback-secret',
  text: `
    insert into smartqueue.callback_secrets as s (org_id, secret)
    values ($1::uuid, smartqueue.new_signing_secret())
    on conflict (org_id) do update
    set
      previous_secret = case when $2::int > 0 then s.secret end,
      previous_expires_at = case when $2::int > 0 then now() + $2::int * interval '1 second' end,
      secret = excluded.secret,
      created_at = now()
    returning
      s.secret, s.created_at, s.previous_expires_at,
      smartqueue.audit(
        $1::uuid, 'callback_secret.rotated', jsonb_build_object('previous_expires_at', s.previous_expires_at)
      ) as audited`,
  values: [orgId, keepPreviousSeconds],
})
