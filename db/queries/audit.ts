import type { NewestFirst, Query } from '../query.ts'

export const AUDIT_ACTIONS = [
  'account.registered',
  'account.signed_in',
  'account.sign_in_failed',
  'account.signed_out',
  'account.password_changed',
  'account.token_reused',
  'account.deleted',
  'org.created',
  'org.switched',
  'org.quotas_changed',
  'member.invited',
  'member.invitation_revoked',
  'member.joined',
  'member.role_changed',
  'member.removed',
  'api_key.created',
  'api_key.revoked',
  'queue.paused',
  'queue.resumed',
  'jobs.cancelled',
  'jobs.retried',
  'schedule.created',
  'schedule.changed',
  'schedule.deleted',
  'schedule.run',
  'webhook_source.created',
  'webhook_source.changed',
  'webhook_source.rotated',
  'webhook_source.deleted',
  'webhook_delivery.replayed',
  'callback_endpoint.created',
  'callback_endpoint.changed',
  'callback_endpoint.deleted',
  'callback_secret.rotated',
  'admin.granted',
  'admin.revoked',
] as const

export type AuditRow = {
  id: string
  at: string
  actor_id: string | null
  actor: string | null
  api_key_id: string | null
  action: (typeof AUDIT_ACTIONS)[number]
  target: Record<string, unknown>
  ip: string | null
  request_id: string | null
}

/** Newest first. */
export const listAuditLog = (
  page: NewestFirst & { orgId: string; action: string | null },
): Query<AuditRow> => ({
  name: 'list-audit-log',
  text: `
    select
      a.id::text as id, a.at, a.actor_id,
      case
        when u.id is not null then u.username
        -- Not a valid username, so nobody can have it.
        when a.actor_id is not null and smartqueue.is_deleted_user(a.actor_id) then 'deleted user'
      end as actor,
      a.api_key_id, a.action, a.target, host(a.ip) as ip, a.request_id
    from smartqueue.audit_log a
    left join smartqueue.users u on u.id = a.actor_id
    where a.org_id = $1::uuid
      and ($2::text is null or a.action = $2::text)
      and ($3::bigint is null or a.id < $3::bigint)
    order by a.id desc
    limit $4::int`,
  values: [page.orgId, page.action, page.before, page.limit],
})
