import { z } from '@hono/zod-openapi'
import { AUDIT_ACTIONS } from '../../db/queries/audit.ts'
import { INVITATION_HOURS } from '../../db/queries/invitations.ts'
import { QUOTAS, WEIGHT, WEIGHT_FAULT } from '../../db/rules/quotas.ts'
import { MEMBER_ROLES } from '../../db/rules/roles.ts'
import { timestamp } from '../http/openapi.ts'

const role = z.enum(MEMBER_ROLES)

export const newOrg = z
  .strictObject({ name: z.string().trim().min(1).max(100).openapi({ example: 'Analytics' }) })
  .openapi('NewOrg')

const orgFields = {
  id: z.uuid(),
  name: z.string(),
  role: role.nullable().openapi({ description: 'Yours in it. Null: you are an admin, and no member.' }),
  created_at: timestamp,
}

export const org = z.object(orgFields).openapi('Org')

export const activeOrg = z.object({ ...orgFields, members: z.int() }).openapi('ActiveOrg')

export const member = z
  .object({ user_id: z.uuid(), username: z.string(), role, joined_at: timestamp })
  .openapi('Member')

export const roleChange = z.strictObject({ role }).openapi('RoleChange')

export const newInvitation = z
  .strictObject({
    username: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .openapi({ example: 'grace', description: 'Who is invited. Without it, whoever has the link, once.' }),
    role: role.default('user'),
  })
  .openapi('NewInvitation')

const invitationFields = {
  id: z.uuid(),
  org_id: z.uuid(),
  role,
  created_at: timestamp,
  expires_at: timestamp.openapi({ description: `${INVITATION_HOURS} hours after it was made.` }),
}

export const createdInvitation = z
  .object({
    ...invitationFields,
    username: z.string().nullable(),
    token: z
      .string()
      .nullable()
      .openapi({ description: 'Of a link: what `accept` asks for. Shown only this once.' }),
    url: z.string().nullable().openapi({ description: 'The link. Shown only this once.' }),
  })
  .openapi('CreatedInvitation')

export const invitation = z
  .object({
    ...invitationFields,
    username: z.string().nullable().openapi({ description: 'Who is invited. Null: whoever has the link.' }),
    invited_by: z.string().nullable(),
  })
  .openapi('Invitation')

export const ownInvitation = z.object({ ...invitationFields, org_name: z.string() }).openapi('OwnInvitation')

export const acceptance = z
  .strictObject({
    token: z
      .string()
      .max(256)
      .optional()
      .openapi({ description: 'Of a link. Not needed if you were invited by name.' }),
  })
  .openapi('Acceptance')

export const joined = z
  .object({ org_id: z.uuid(), org_name: z.string(), role })
  .openapi('Joined', { description: 'POST /orgs/{id}/switch makes it the active one.' })

const limit = z.int().min(0).max(Number.MAX_SAFE_INTEGER).nullable()

const quota = z.object({
  limit: limit.openapi({ description: 'Null: no limit.' }),
  used: z.int(),
})

const forEach = <Value extends z.ZodType>(value: Value) =>
  Object.fromEntries(QUOTAS.map((name) => [name, value])) as Record<(typeof QUOTAS)[number], Value>

const weight = z.number(WEIGHT_FAULT).min(WEIGHT.min, WEIGHT_FAULT).max(WEIGHT.max, WEIGHT_FAULT).openapi({
  description:
    "The organisation's share of the workers' time, relative to the weights of other organisations with waiting jobs.",
  example: 1,
})

export const quotas = z.object({ ...forEach(quota), weight }).openapi('Quotas')

export const quotaChange = z
  .strictObject({ ...forEach(limit.optional()), weight: weight.optional() })
  .refine((change) => Object.keys(change).length > 0, 'needs at least one field')
  .openapi('QuotaChange', { description: 'Null takes a limit away; what is not named stays.' })

export const auditEntry = z
  .object({
    id: z.string(),
    at: timestamp,
    actor_id: z.uuid().nullable().openapi({ description: 'Null: an operator, by a command.' }),
    actor: z.string().nullable().openapi({
      description: 'The name, if you can see this user; `deleted user` if the account was deleted.',
    }),
    api_key_id: z.uuid().nullable(),
    action: z.enum(AUDIT_ACTIONS),
    target: z.record(z.string(), z.unknown()),
    ip: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .openapi('AuditEntry')
