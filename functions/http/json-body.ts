import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { AppEnv } from '../context.ts'
import { ProblemError } from './problem.ts'
import { findUnstorable } from './storable.ts'

const KIB = 1024

export type BodyLimits = { maxBytes: number; maxDepth: number }

const JOB_LIMITS: BodyLimits = { maxBytes: 256 * KIB, maxDepth: 32 }

/** A job of a batch stands two levels deeper than one that is sent alone. */
export const BATCH_LIMITS: BodyLimits = { maxBytes: 5 * KIB * KIB, maxDepth: JOB_LIMITS.maxDepth + 2 }

/** That of a schedule, one level. */
export const SCHEDULE_LIMITS: BodyLimits = { ...JOB_LIMITS, maxDepth: JOB_LIMITS.maxDepth + 1 }

/** What hono's validator takes for JSON, no more: it passes over a body of another type. */
const JSON_TYPE = /^application\/([a-z-.]+\+)?json(;\s*[a-zA-Z0-9-]+=([^;]+))*$/

/**
 * Route middleware that reads and checks a JSON body first: media type, size, encoding, syntax, depth, and text
 * that Postgres can hold. Routes then validate the shape.
 */
export const jsonBody = (limits = JOB_LIMITS): MiddlewareHandler<AppEnv> => {
  const limitSize = createSizeLimit(limits)
  return (c, next) =>
    limitSize(c, async () => {
      await checkBody(c, limits)
      await next()
    })
}

/** The same for a route that may be called without a body, whatever the header says of one. */
export const optionalJsonBody = (limits = JOB_LIMITS): MiddlewareHandler<AppEnv> => {
  const limitSize = createSizeLimit(limits)
  return (c, next) =>
    limitSize(c, async () => {
      if ((await c.req.arrayBuffer()).byteLength > 0) {
        await checkBody(c, limits)
        await next()
        return
      }
      const { url, method, headers } = c.req.raw
      const bare = new Headers(headers)
      bare.delete('content-type')
      c.req.raw = new Request(url, { method, headers: bare })
      await next()
    })
}

/**
 * Applied once per request: the limit reads a chunked body to its end, so a second one would find it
 * consumed.
 */
const createSizeLimit = ({ maxBytes }: BodyLimits): MiddlewareHandler<AppEnv> =>
  bodyLimit({
    maxSize: maxBytes,
    onError: () => {
      throw new ProblemError('body-too-large', `A body may have ${maxBytes / KIB} KiB.`)
    },
  })

const checkBody = async (c: Context<AppEnv>, limits: BodyLimits): Promise<void> => {
  if (!JSON_TYPE.test(c.req.header('content-type') ?? '')) {
    throw new ProblemError('unsupported-media-type', 'Send the body as content-type: application/json.')
  }
  checkJson(parseJson(await c.req.arrayBuffer()), limits)
}

const parseJson = (bytes: ArrayBuffer): unknown => {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw new ProblemError('malformed-body', 'The body is not valid UTF-8.')
  }
  try {
    return LONG_NUMBER.test(text) ? JSON.parse(text, keepLongNumbers) : JSON.parse(text)
  } catch {
    throw new ProblemError('malformed-body', 'The body is not valid JSON.')
  }
}

/** Sixteen digits in a row: the least that can be an integer which a double does not hold. */
const LONG_NUMBER = /\d{16}/

/** An integer that a double may round, say an id of another system, becomes NaN: `findUnstorable` refuses that. */
const keepLongNumbers = (_key: string, value: unknown, context?: { source?: string }): unknown => {
  const isInteger = typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '')
  return isInteger && !Number.isSafeInteger(value) ? Number.NaN : value
}

const checkJson = (body: unknown, { maxDepth }: BodyLimits): void => {
  const found = findUnstorable(body, maxDepth)
  if (found?.reason === 'depth') {
    throw new ProblemError('malformed-body', `The body is nested deeper than ${maxDepth} levels.`)
  }
  if (found) {
    throw new ProblemError('invalid-request', 'The body holds a value that cannot be stored unchanged.', {
      errors: [{ in: 'body', pointer: found.pointer, detail: found.detail }],
    })
  }
}
