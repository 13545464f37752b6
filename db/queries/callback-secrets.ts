import type { Query } from '../query.ts'

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
    with rotated as (
      insert into smartqueue.callback_secrets as s (org_id, secret)
      values ($1::uuid, smartqueue.new_signing_secret())
      on conflict (org_id) do update
      set
        previous_secret = case when $2::int > 0 then s.secret end,
        previous_expires_at = case when $2::int > 0 then now() + $2::int * interval '1 second' end,
        secret = excluded.secret,
        created_at = now()
      returning s.org_id, s.secret, s.created_at, s.previous_expires_at
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'callback_secret.rotated', jsonb_build_object('previous_expires_at', previous_expires_at)
      from rotated
    )
    select secret, created_at, previous_expires_at
    from rotated`,
  values: [orgId, keepPreviousSeconds],
})
