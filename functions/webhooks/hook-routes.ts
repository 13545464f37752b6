import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { MAX_KIB, type Receipt, receive } from './receive.ts'
import { receipt } from './schemas.ts'
import { viewOutcome } from './views.ts'

/** Where senders send. They prove themselves by their signature, which only the bytes as they came can be checked against. */
export const hookRoutes = () =>
  createRouter().openapi(hookRoute, async (c) => {
    const { source_id } = c.req.valid('param')
    return answer(c, await receiveRequest(c, source_id, new Uint8Array(await c.req.arrayBuffer())))
  })

const receiveRequest = (
  c: Context<AppEnv>,
  sourceId: string,
  bytes: Uint8Array<ArrayBuffer> | null,
): Promise<Receipt> =>
  receive(c.get('services'), {
    sourceId,
    headers: c.req.header(),
    bytes,
    origin: originOf(c),
    hold: holdOf(c),
    trace: c.get('trace'),
  })

const answer = (c: Context<AppEnv>, outcome: Receipt) => {
  c.set('changedOrgId', outcome.orgId)
  if ('refusal' in outcome && outcome.refusal) throw outcome.refusal
  const view = viewOutcome(outcome, outcome.deliveryId)
  const headers: Record<string, string> = view.job_id === null ? {} : { location: `/jobs/${view.job_id}` }
  return view.status === 'accepted' || view.status === 'quarantined'
    ? c.json(view, 202, headers)
    : c.json(view, 200, headers)
}

const sourceId = z.uuid().toLowerCase()

/** Too large to be verified, but the journal tells of it. */
const limitSize = bodyLimit({
  maxSize: MAX_KIB * 1024,
  onError: async (c) => {
    const id = sourceId.safeParse(c.req.param('source_id'))
    if (id.success) await receiveRequest(c, id.data, null)
    throw new ProblemError('not-found', 'Nothing has this id.')
  },
})

const hookRoute = createRoute({
  method: 'post',
  path: '/hooks/{source_id}',
  tags: ['webhooks'],
  summary: 'Deliver an event',
  description:
    'For senders: no token, but the signature that the scheme of the source asks for. Answered once it is stored. An event ' +
    'that comes again within 8 days is not stored again.',
  middleware: limitSize,
  request: {
    params: z.object({ source_id: sourceId.openapi({ param: { name: 'source_id', in: 'path' } }) }),
    // Not a schema that would be checked: the bytes are to be verified before they are read.
    body: {
      required: true,
      content: {
        'application/json': { schema: { type: 'object', description: 'The event, up to 256 KiB.' } },
      },
    },
  },
  responses: {
    200: jsonContent(receipt, 'A duplicate, with the first job; or not for the filter'),
    202: jsonContent(receipt, 'The job is queued; or kept in quarantine, with the reason'),
    ...problems('webhook-rejected', 'not-found', 'body-too-large', 'quota-exceeded'),
  },
})
