import { z } from '@hono/zod-openapi'
import { ROLES } from '../../db/rules/roles.ts'
import { time, timestamp } from '../http/openapi.ts'
import { REGISTRATION_MODES, SHORTEST_PASSWORD } from '../settings.ts'
import { SCOPES } from './permissions.ts'

const username = z
  .string()
  .min(3)
  .max(64)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._@+-]*$/,
    'Must start with a letter or digit and have only letters, digits and . _ @ + -',
  )
  .openapi({ example: 'ada' })

const password = z.string().min(SHORTEST_PASSWORD).max(256).openapi({
  format: 'password',
  example: 'correct horse battery',
  description:
    'Must not be the username with or without digits and punctuation, one of the most common passwords, or the same characters repeated.',
})

/** Not the rules of registration: a name or password that breaks them is simply wrong. */
export const anyPassword = z
  .string()
  .max(256)
  .openapi({ format: 'password', example: 'correct horse battery' })

export const registration = z
  .strictObject({
    username,
    password,
    invitation: z.string().max(256).optional().openapi({
      description:
        'The token of an invitation link: the account joins that organisation instead of getting a personal one.',
    }),
  })
  .openapi('Registration')

export const registrationPolicy = z
  .object({
    registration: z.enum(REGISTRATION_MODES).openapi({
      description:
        '`open`: anyone may register. `invite`: anyone with an invitation link. `closed`: only the operator creates accounts.',
    }),
  })
  .openapi('RegistrationPolicy')

export const credentials = z
  .strictObject({ username: z.string().max(256).openapi({ example: 'ada' }), password: anyPassword })
  .openapi('Credentials')

export const refreshRequest = z
  .strictObject({
    refresh_token: z
      .string()
      .max(256)
      .optional()
      .openapi({ description: 'Required, but with `smartqueue-session: cookie`, where the cookie has it.' }),
  })
  .openapi('RefreshRequest')

export const passwordChange = z
  .strictObject({
    current_password: anyPassword,
    new_password: password,
    revoke_keys: z
      .boolean()
      .default(false)
      .openapi({ description: 'Also revokes all your API keys, in all organisations.' }),
  })
  .openapi('PasswordChange')

export const passwordChanged = z
  .object({ ended_sessions: z.int(), revoked_keys: z.int() })
  .openapi('PasswordChanged')

export const signInSession = z
  .object({
    id: z.uuid(),
    current: z.boolean().openapi({ description: 'Whether this request uses it.' }),
    org_id: z.uuid().openapi({ description: 'Its active organisation.' }),
    created_at: timestamp,
    last_used_at: timestamp.openapi({ description: 'When it started or last got an access token.' }),
    expires_at: timestamp.openapi({ description: 'When it expires unless it is used before.' }),
    ip: z.string().nullable().openapi({ description: 'The address it was last used from, if known.' }),
    user_agent: z.string().nullable().openapi({ description: 'The `User-Agent` header of its last use.' }),
  })
  .openapi('SignIn')

const user = z.object({
  id: z.uuid(),
  username: z.string(),
  role: z.enum(ROLES),
  org_id: z.uuid().openapi({ description: 'The active organisation.' }),
})

const accessFields = {
  user,
  access_token: z.string().openapi({ description: 'Send as `authorization: Bearer …`.' }),
  expires_in: z.int().openapi({ description: 'Seconds that the access token lives.', example: 600 }),
}

export const session = z
  .object({
    ...accessFields,
    refresh_token: z.string().nullable().openapi({
      description: 'Good for one `POST /auth/refresh`. Null with `smartqueue-session: cookie`.',
    }),
  })
  .openapi('Session')

export const activeSession = z
  .object(accessFields)
  .openapi('ActiveSession', { description: 'The refresh token stays the same.' })

export const account = z
  .object({
    id: z.uuid(),
    username: z.string(),
    is_admin: z.boolean(),
    org_ids: z.array(z.uuid()).openapi({ description: 'Organisations that the user is a member of.' }),
    created_at: timestamp,
  })
  .openapi('Account')

const scopes = z.array(z.enum(SCOPES)).min(1).max(SCOPES.length)

export const newApiKey = z
  .strictObject({
    name: z.string().min(1).max(100).openapi({ example: 'nightly import' }),
    scopes: scopes.openapi({
      description: 'What the key may do, at most what its maker may.',
      example: ['jobs:submit', 'jobs:read'],
    }),
    expires_at: time
      .optional()
      .openapi({ description: 'Not good after this time. Without it, until revoked.' }),
  })
  .openapi('NewApiKey')

const apiKeyFields = {
  id: z.uuid(),
  user_id: z.uuid().openapi({ description: 'The member who made it, and for whom it acts.' }),
  username: z.string().openapi({ description: 'Of that member.' }),
  name: z.string(),
  prefix: z.string().openapi({ example: 'sqk_1a2b3c4d' }),
  scopes: z.array(z.string()),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable().openapi({ description: 'To the minute.' }),
  revoked_at: timestamp.nullable(),
}

export const apiKey = z.object(apiKeyFields).openapi('ApiKey')

export const createdApiKey = z
  .object({
    ...apiKeyFields,
    key: z.string().openapi({ description: 'Send as `authorization: Bearer …`. Shown only this once.' }),
  })
  .openapi('CreatedApiKey')

export const jwks = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        kid: z.string(),
        x: z.string(),
        alg: z.literal('EdDSA'),
        use: z.literal('sig'),
      }),
    ),
  })
  .openapi('JsonWebKeySet')
