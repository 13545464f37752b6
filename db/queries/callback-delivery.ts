import type { Query } from '../query.ts'

/** What a delivery needs to know at the moment of an attempt. */
export type CallbackAddress = {
  secret: string
  /** While it is still good. */
  previous_secret: string | null
  disabled: boolean
}

export const findCallbackAddress = (orgId: string, url: string): Query<CallbackAddress> => ({
  name: 'find-callback-address',
  text: `
    select secret, previous_secret, disabled
    from smartqueue.callback_address($1::uuid, $2::text)`,
  values: [orgId, url],
})

/** The receiver wants no more. Of a URL that is no endpoint, only that is kept. */
export const disableCallbackUrl = (disabled: {
  id: string
  orgId: string
  url: string
  reason: string
}): Query<never> => ({
  name: 'disable-callback-url',
  text: `
    insert into smartqueue.callback_endpoints as e (org_id, id, url, events, disabled_at, disabled_reason)
    values ($1::uuid, $2::uuid, $3::text, '{}', now(), $4::text)
    on conflict on constraint callback_endpoints_url do update
    set disabled_at = now(), disabled_reason = excluded.disabled_reason, updated_at = now()
    where e.disabled_at is null`,
  values: [disabled.orgId, disabled.id, disabled.url, disabled.reason],
})
