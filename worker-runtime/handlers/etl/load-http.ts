import type { JobContext } from '../../handler-api.ts'
import { redactUrl, unexpectedStatus } from '../http/answers.ts'
import { readExcerpt } from '../http/excerpt.ts'
import { hasContentType } from '../http/fields.ts'
import type { HttpLoad } from './load-schema.ts'
import { NO_PROGRESS, type OutputBatch, type Progress, type Target } from './target.ts'

/**
 * Sends batches in order, one request each. After each one the job's checkpoint says how far it is, so an attempt that is
 * interrupted between the two sends one batch again, under the same Idempotency-Key.
 */
export function sendBatches(load: HttpLoad, ctx: JobContext): Target {
  const progress = progressOf(ctx.lastCheckpoint)
  let sent = progress.rows
  return {
    batchSize: load.batch_size,
    progress,
    load: async (batch) => {
      await send(load, ctx, batch)
      await ctx.checkpoint({ rows: batch.to, digest: batch.digest })
      sent = batch.to
    },
    loaded: () => sent,
    finish: async (result) => result,
  }
}

function progressOf(checkpoint: unknown): Progress {
  const { rows, digest } = (checkpoint ?? {}) as { rows?: unknown; digest?: unknown }
  return typeof rows === 'number' && typeof digest === 'string'
    ? { ...NO_PROGRESS, rows, digest }
    : NO_PROGRESS
}

async function send(load: HttpLoad, ctx: JobContext, { json, records, from }: OutputBatch): Promise<void> {
  const { url, method, headers = {}, format, batch_size } = load
  const response = await ctx.fetch(url, {
    method,
    headers: {
      ...(hasContentType(headers) ? {} : { 'content-type': CONTENT_TYPES[format] }),
      ...headers,
      // Numbered from 1: only the last batch is shorter than the others.
      'idempotency-key': `${ctx.jobId}-${Math.floor(from / batch_size) + 1}`,
    },
    body: format === 'json' ? json : records.map(({ row }) => `${JSON.stringify(row)}\n`).join(''),
    signal: ctx.signal,
  })
  // Read in any case: a connection whose answer is left unread is not used again.
  const answer = await readExcerpt(response)
  if (!response.ok) throw unexpectedStatus(response, `${method} ${redactUrl(url)}`, answer)
}

const CONTENT_TYPES = { json: 'application/json', ndjson: 'application/x-ndjson' }
