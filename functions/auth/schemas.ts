import { z } from '@hono/zod-openapi'
import { ROLES } from '../../db/rules/roles.ts'

const username = z
  .string()
  .min(3)
  .max(64)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._@+-]*$/,
    'Must start with a letter or digit and have only letters, digits and . _ @ + -',
  )
  .openapi({ example: 'ada' })

const password = z.string().min(8).max(256).openapi({ format: 'password', example: 'correct horse battery' })

export const registration = z.strictObject({ username, password }).openapi('Registration')

/** Not the rules of registration: a name or password that breaks them is simply wrong. */
export const credentials = z
  .strictObject({
    username: z.string().max(256).openapi({ example: 'ada' }),
    password: z.string().max(256).openapi({ format: 'password', example: 'correct horse battery' }),
  })
  .openapi('Credentials')

export const refreshRequest = z.strictObject({ refresh_token: z.string().max(256) }).openapi('RefreshRequest')

export const session = z
  .object({
    user: z.object({
      id: z.uuid(),
      username: z.string(),
      role: z.enum(ROLES),
      org_id: z.uuid(),
    }),
    access_token: z.string().openapi({ description: 'Send as `authorization: Bearer …`.' }),
    refresh_token: z.string().openapi({ description: 'Good for one `POST /auth/refresh`.' }),
    expires_in: z.int().openapi({ description: 'Seconds that the access token lives.', example: 600 }),
  })
  .openapi('Session')
