/** The audit log in words. */
import type { AuditEntry } from '../../api/answers.ts'
import { count, counted } from '../../ui/format.ts'

type Action = AuditEntry['action']

export const ACTION_WORDS: Record<Action, string> = {
  'account.registered': 'created an account',
  'account.signed_in': 'signed in',
  'account.sign_in_failed': 'failed to sign in',
  'account.signed_out': 'signed out',
  'account.password_changed': 'changed a password',
  'account.token_reused': 'used a refresh token twice',
  'account.deleted': 'deleted their account',
  'org.created': 'made the organisation',
  'org.switched': 'switched to the organisation',
  'org.quotas_changed': 'set quotas',
  'member.invited': 'invited',
  'member.invitation_revoked': 'revoked an invitation',
  'member.joined': 'joined',
  'member.role_changed': 'changed a role',
  'member.removed': 'removed a member',
  'api_key.created': 'made an API key',
  'api_key.revoked': 'revoked an API key',
  'queue.paused': 'paused the queue',
  'queue.resumed': 'resumed the queue',
  'jobs.cancelled': 'cancelled jobs',
  'jobs.retried': 'retried jobs',
  'schedule.created': 'made a schedule',
  'schedule.changed': 'changed a schedule',
  'schedule.deleted': 'deleted a schedule',
  'schedule.run': 'ran a schedule',
  'webhook_source.created': 'made a webhook source',
  'webhook_source.changed': 'changed a webhook source',
  'webhook_source.rotated': 'rotated the secret of a webhook source',
  'webhook_source.deleted': 'deleted a webhook source',
  'webhook_delivery.replayed': 'replayed a delivery',
  'callback_endpoint.created': 'made a callback endpoint',
  'callback_endpoint.changed': 'changed a callback endpoint',
  'callback_endpoint.deleted': 'deleted a callback endpoint',
  'callback_secret.rotated': 'rotated the secret of callbacks',
  'admin.granted': 'made somebody a platform admin',
  'admin.revoked': 'took the rights of a platform admin',
}

const WARNINGS: readonly Action[] = ['account.sign_in_failed', 'account.token_reused']

export const isWarning = (action: Action): boolean => WARNINGS.includes(action)

/** Who it was, as far as one may know. */
export const actorOf = ({ actor, actor_id, action }: AuditEntry): string => {
  if (actor !== null) return actor
  if (actor_id !== null) return `user ${actor_id.slice(-8)}`
  return isWarning(action) ? 'somebody' : 'an operator'
}

/** What it was done to: names where there are some, else the end of an id. */
export const targetOf = (entry: AuditEntry, nameOf: (userId: string) => string | undefined): string => {
  const { target, action, actor_id } = entry
  if (action === 'org.quotas_changed') return quotasOf(target)
  if (typeof target.count === 'number') return counted(target.count, 'job')
  if (action.startsWith('queue.'))
    return typeof target.type === 'string' ? `jobs of type ${target.type}` : 'all jobs'
  const whom = text(target.user_id)
  // That somebody did it to themselves goes without saying.
  const user = whom && whom !== actor_id ? (nameOf(whom) ?? `user ${whom.slice(-8)}`) : ''
  const anybody = action === 'member.invited' && !whom ? 'whoever has the link' : ''
  const parts = [
    user || anybody,
    text(target.name),
    text(target.prefix),
    text(target.url),
    roleOf(target),
    fieldsOf(target),
  ]
  return parts.filter(Boolean).join(', ') || idOf(target, whom)
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

const roleOf = ({ from, to, role }: AuditEntry['target']): string =>
  from && to ? `from ${from} to ${to}` : role ? `as ${role}` : ''

const fieldsOf = ({ fields }: AuditEntry['target']): string =>
  Array.isArray(fields) ? fields.join(', ') : ''

const quotasOf = (target: AuditEntry['target']): string =>
  Object.entries(target)
    .map(([quota, limit]) => `${quota}: ${typeof limit === 'number' ? limitInWords(limit) : 'no limit'}`)
    .join(', ')

/** A weight may have decimals. */
const limitInWords = (limit: number): string => (Number.isInteger(limit) ? count(limit) : String(limit))

/** `invitation 1a2b3c4d` */
const idOf = (target: AuditEntry['target'], except: string): string => {
  const [key, value] =
    Object.entries(target).find(([name, id]) => name.endsWith('_id') && id !== except) ?? []
  return key ? `${key.slice(0, -3).replaceAll('_', ' ')} ${text(value).slice(-8)}` : ''
}
