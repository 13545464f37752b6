import { z } from 'zod'
import { disableCallbackUrl, findCallbackAddress } from '../../db/queries/callback-delivery.ts'
import type { Run } from '../../db/query.ts'
import { CALLBACK_TYPE, TEST_EVENT } from '../../db/rules/callbacks.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import manifest from '../../package.json' with { type: 'json' }
import { defineJob, type JobContext, JobError, type JobHandler } from '../handler-api.ts'
import { readExcerpt } from '../handlers/http/excerpt.ts'
import { retryAfterSeconds } from '../handlers/http/retry-after.ts'
import { signedHeaders } from './signature.ts'

const schema = z.strictObject({
  url: z.string(),
  event: z.string(),
  body: z.strictObject({ type: z.string(), timestamp: z.string(), data: z.record(z.string(), z.unknown()) }),
})

type Payload = z.output<typeof schema>

/** Tells one URL of one event: the handler of jobs that only SmartQueue itself submits. */
export const createCallbackJob = (run: Run): JobHandler<typeof schema> =>
  defineJob({
    type: CALLBACK_TYPE,
    schema,
    run: async (payload, ctx) => {
      const { secrets, disabled } = await findAddress(run, ctx.orgId, payload.url)
      // Who tries a disabled endpoint out wants to know whether it could be enabled.
      if (disabled && payload.event !== TEST_EVENT) return { skipped: 'disabled' }
      const startedAt = performance.now()
      const response = await send(payload, secrets, ctx)
      const excerpt = await readExcerpt(response)
      const duration_ms = Math.round(performance.now() - startedAt)
      ctx.log.info(`${hostOf(payload)} answered ${response.status} in ${duration_ms} ms`)
      if (response.ok) return { status: response.status, duration_ms }
      if (response.status === GONE) await disable(run, ctx.orgId, payload.url)
      throw refused(hostOf(payload), response, excerpt)
    },
  })

const findAddress = async (
  run: Run,
  orgId: string,
  url: string,
): Promise<{ secrets: string[]; disabled: boolean }> => {
  const [found] = await run(findCallbackAddress(orgId, url))
  if (!found) throw new Error('An organisation has a secret for its callbacks')
  const { secret, previous_secret, disabled } = found
  return { secrets: previous_secret ? [secret, previous_secret] : [secret], disabled }
}

/** The id is the same at every attempt, so that a receiver that has taken one can tell; the time is of the attempt. */
const send = (
  { url, body: { type, timestamp, data } }: Payload,
  secrets: readonly string[],
  ctx: JobContext,
): Promise<Response> => {
  // In this order: the database has kept another.
  const body = JSON.stringify({ type, timestamp, data })
  const message = { id: ctx.jobId, timestampSeconds: Math.floor(Date.now() / 1000), body }
  return ctx.fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': `SmartQueue/${manifest.version}`,
      ...signedHeaders(message, secrets),
    },
    body,
    redirect: 'manual',
    signal: ctx.signal,
  })
}

const GONE = 410

const disable = (run: Run, orgId: string, url: string): Promise<unknown> =>
  run(disableCallbackUrl({ id: uuidV7(), orgId, url, reason: 'answered 410 Gone' }))

const refused = (host: string, { status, headers }: Response, excerpt: string): JobError => {
  const said = excerpt && `: ${excerpt}`
  if (status === GONE) {
    const message = `${host} answered 410 Gone, and is told no more. PATCH /callbacks/endpoints/{id} enables it again.`
    return new JobError('gone', message, { permanent: true })
  }
  if (status >= 300 && status < 400) {
    const message = `${host} answered ${status}: redirects are not followed. Give the URL that it redirects to.`
    return new JobError('http_status', message)
  }
  return new JobError('http_status', `${host} answered ${status}${said}`, {
    retryAfterSeconds: retryAfterSeconds(status, headers, Date.now()),
  })
}

/** What follows the host may be secret. */
const hostOf = ({ url }: Payload): string => URL.parse(url)?.host ?? 'nowhere'
