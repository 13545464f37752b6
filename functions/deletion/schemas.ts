import { z } from '@hono/zod-openapi'
import { ORG_FATES } from '../../db/queries/deletion.ts'
import { MEMBER_ROLES } from '../../db/rules/roles.ts'
import { anyPassword } from '../auth/schemas.ts'
import { timestamp } from '../http/openapi.ts'

export const orgDeletion = z
  .strictObject({
    name: z
      .string()
      .max(100)
      .openapi({ example: 'Analytics', description: 'The name of the organisation, as confirmation.' }),
    password: anyPassword.openapi({ description: 'Your own password.' }),
  })
  .openapi('OrgDeletion')

export const closedOrg = z
  .object({
    id: z.uuid(),
    name: z.string(),
    next_org_id: z.uuid().openapi({
      description:
        'Your active organisation from now on. `POST /auth/refresh` returns an access token for it.',
    }),
  })
  .openapi('ClosedOrg')

export const deletedOrg = z
  .object({
    id: z.uuid(),
    requested_at: timestamp,
    requested_by: z
      .uuid()
      .nullable()
      .openapi({ description: 'The user who deleted it, directly or by deleting their account.' }),
    request_id: z.string().nullable(),
    removed_at: timestamp
      .nullable()
      .openapi({ description: 'When the last of its data was removed; null until then.' }),
  })
  .openapi('DeletedOrg')

export const accountDeletion = z.strictObject({ password: anyPassword }).openapi('AccountDeletion')

const namedOrg = { id: z.uuid(), name: z.string() }

export const closedAccount = z
  .object({
    deleted_orgs: z
      .array(z.object(namedOrg))
      .openapi({ description: 'Organisations that were deleted with the account.' }),
  })
  .openapi('ClosedAccount')

export const ownAccount = z
  .object({
    id: z.uuid(),
    username: z.string(),
    orgs: z.array(
      z.object({
        ...namedOrg,
        role: z.enum(MEMBER_ROLES),
        on_deletion: z.enum(ORG_FATES).openapi({
          description:
            'What deleting the account does to it. `left`: the organisation continues without you. `deleted`: you are its only ' +
            'member, so it is deleted with the account. `blocks`: others would be left without an org_admin, so the ' +
            'account cannot be deleted until there is another one.',
        }),
      }),
    ),
  })
  .openapi('OwnAccount')
