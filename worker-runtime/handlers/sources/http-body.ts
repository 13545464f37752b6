import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type JobContext, JobError } from '../../handler-api.ts'
import { brokenOff, redactUrl, unexpectedStatus } from '../http/answers.ts'
import { decoderFor, decoderOf } from '../http/decoder.ts'
import { readExcerpt } from '../http/excerpt.ts'

export type HttpRequest = {
  readonly url: string
  readonly headers?: Record<string, string> | undefined
  /** A label of the Encoding Standard, such as `windows-1252`. UTF-8, or what the answer says, if absent. */
  readonly encoding?: string | undefined
  /** Of the body as it is read, after decompression. A longer one fails the job; no limit if absent. */
  readonly maxBytes?: number | undefined
}

export type HttpBody = {
  /** UTF-8, decompressed. Leaving the loop cancels the download. */
  readonly chunks: AsyncIterable<Uint8Array>
  /** The share that has arrived, from 0 to 1; undefined if the server did not say how long it is. */
  fraction(): number | undefined
}

type Context = Pick<JobContext, 'fetch' | 'signal'>

/** GETs a body to be read as a stream. A gzip file is known by its first bytes, whatever its name. */
export async function openHttp(ctx: Context, request: HttpRequest): Promise<HttpBody> {
  const { url, headers = {} } = request
  const response = await ctx.fetch(url, { headers, signal: ctx.signal })
  if (!response.ok) throw unexpectedStatus(response, `GET ${redactUrl(url)}`, await readExcerpt(response))
  const size = sizeOf(response)
  let received = 0
  const raw = readRaw(ctx, response, url, (bytes) => {
    received += bytes
  })
  const decoder = decoderFor(request.encoding) ?? decoderOf(response.headers.get('content-type'))
  const plain = transcode(decompress(raw, url), decoder)
  return {
    chunks: request.maxBytes === undefined ? plain : limit(plain, request.maxBytes, url),
    fraction: () => (size === undefined ? undefined : Math.min(1, received / size)),
  }
}

/** Of what is read: behind a content encoding the header counts other bytes. */
function sizeOf({ headers }: Response): number | undefined {
  const length = Number(headers.get('content-length') ?? 0)
  return length > 0 && !headers.has('content-encoding') ? length : undefined
}

async function* readRaw(
  ctx: Context,
  response: Response,
  url: string,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) {
      count(chunk.length)
      yield chunk
    }
  } catch (error) {
    ctx.signal.throwIfAborted()
    throw brokenOff(url, error)
  }
}

async function* decompress(raw: AsyncGenerator<Uint8Array>, url: string): AsyncGenerator<Uint8Array> {
  let head: Uint8Array = new Uint8Array(0)
  while (head.length < GZIP_MAGIC.length) {
    const { value, done } = await raw.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  const whole = prepend(head, raw)
  if (!GZIP_MAGIC.every((byte, index) => head[index] === byte)) return yield* whole
  try {
    yield* pipeline(Readable.from(whole), createGunzip(), () => {})
  } catch (error) {
    throw error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
      ? new JobError('source_malformed', `The gzip data of ${redactUrl(url)} is damaged: ${error.message}`, {
          permanent: true,
        })
      : error
  }
}

const GZIP_MAGIC = [0x1f, 0x8b]

async function* prepend(head: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head
  yield* rest
}

function transcode(
  chunks: AsyncGenerator<Uint8Array>,
  decoder: TextDecoder | undefined,
): AsyncGenerator<Uint8Array> {
  return decoder === undefined || decoder.encoding === 'utf-8' ? chunks : toUtf8(chunks, decoder)
}

async function* toUtf8(chunks: AsyncGenerator<Uint8Array>, decoder: TextDecoder): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }))
  yield Buffer.from(decoder.decode())
}

async function* limit(
  chunks: AsyncGenerator<Uint8Array>,
  maxBytes: number,
  url: string,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes) {
      const message = `The body of ${redactUrl(url)} is larger than ${maxBytes / 1024 / 1024} MiB.`
      throw new JobError('source_too_large', message, { permanent: true })
    }
    yield chunk
  }
}
