import { createRoute, z } from '@hono/zod-openapi'
import { ACCOUNT_EXPORT, ORG_EXPORT } from '../../db/queries/export.ts'
import { ping } from '../../db/queries/notifications.ts'
import { access } from '../auth/permit.ts'
import { problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { parseCursor, streamExport } from './export-stream.ts'

export const exportRoutes = () =>
  createRouter()
    .openapi(orgExportRoute, async (c) => {
      const { cursor } = c.req.valid('query')
      const run = c.get('run')
      // Checks access first, so that a caller without it gets an error instead of a truncated file.
      await run(ping())
      const from = cursor === undefined ? undefined : parseCursor(ORG_EXPORT, cursor)
      const { org_id: ownerId } = c.get('principal')
      return c.body(streamExport({ run, ownerId, steps: ORG_EXPORT, from }), 200, asFile('organisation'))
    })
    .openapi(accountExportRoute, async (c) => {
      const run = c.get('run')
      await run(ping())
      const { user_id: ownerId } = c.get('principal')
      return c.body(streamExport({ run, ownerId, steps: ACCOUNT_EXPORT }), 200, asFile('account'))
    })

/** Typed as a plain string: with the literal type, hono would treat each response as one JSON document. */
const NDJSON: string = 'application/x-ndjson'

const asFile = (what: string) => ({
  'content-type': NDJSON,
  'content-disposition': `attachment; filename="smartqueue-${what}.ndjson"`,
})

const lines = (description: string) => ({
  description,
  content: { [NDJSON]: { schema: z.string() } },
})

const orgExportRoute = createRoute({
  method: 'get',
  path: '/orgs/me/export',
  tags: ['organisations'],
  summary: 'Export the active organisation',
  description:
    'Newline-delimited JSON: each line is an object with a `type`, one of ' +
    `${ORG_EXPORT.map(({ type }) => `\`${type}\``).join(', ')}. It contains no secrets or hashes. The last line is ` +
    '`{"type":"end","counts":{…}}`; without it the file is incomplete. A very large export ends with ' +
    '`{"type":"continue","cursor":"…"}` instead: request the rest with that cursor. Changes made while the export ' +
    'runs may or may not be included.',
  ...access('org:manage'),
  request: {
    query: z.strictObject({
      cursor: z
        .string()
        .max(100)
        .refine((text) => parseCursor(ORG_EXPORT, text) !== undefined, 'is not a cursor of an export')
        .optional()
        .openapi({ description: 'The cursor from the last line of an export to be continued.' }),
    }),
  },
  responses: {
    200: lines('The organisation, line by line'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const accountExportRoute = createRoute({
  method: 'get',
  path: '/auth/account/export',
  tags: ['auth'],
  summary: 'Export your account',
  description:
    'Newline-delimited JSON, like `GET /orgs/me/export`, of ' +
    `${ACCOUNT_EXPORT.map(({ type }) => `\`${type}\``).join(', ')}. Jobs belong to organisations and are part of their exports.`,
  ...access('account'),
  responses: {
    200: lines('The account, line by line'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})
