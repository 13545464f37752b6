/**
 * An export as newline-delimited JSON, read page by page as the client takes it: memory holds one page, however many jobs
 * there are. Each page is a transaction of its own, that enters anew; so whoever is removed meanwhile gets no more, and what
 * changes while it runs may or may not be in it. The last line says that the export is whole. Without it, it was cut off.
 */
import type { ExportStep } from '../../db/queries/export.ts'
import type { Run } from '../../db/query.ts'

/** Where an export goes on: after a position of a kind of line, or at its beginning. */
export type ExportCursor = { type: string; after: string | null }

/** A Worker may ask others a thousand times for one request. */
const MAX_PAGES = 900

export type ExportSource = {
  run: Run
  ownerId: string
  steps: readonly ExportStep[]
  from?: ExportCursor | undefined
  maxPages?: number
}

export const streamExport = (source: ExportSource): ReadableStream<Uint8Array> => {
  const chunks = writeExport(source)
  const encoder = new TextEncoder()
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: async () => {
      await chunks.return()
    },
  })
}

/** `job:0199…`, as the last line of an export that is to be continued has it. Undefined: it is not one of these steps. */
export const parseCursor = (steps: readonly ExportStep[], text: string): ExportCursor | undefined => {
  const [type = '', after = ''] = text.split(':')
  const step = steps.find((one) => one.type === type)
  if (!step || !text.includes(':')) return undefined
  if (after === '') return { type, after: null }
  return step.position.test(after) ? { type, after } : undefined
}

async function* writeExport(source: ExportSource): AsyncGenerator<string, void, undefined> {
  const { run, ownerId, steps, from, maxPages = MAX_PAGES } = source
  const counts = new Map<string, number>()
  let pages = 0
  yield toLine({ type: 'export', version: 1, exported_at: new Date().toISOString() })
  for (const { type, page } of steps.slice(
    Math.max(
      0,
      steps.findIndex((step) => step.type === from?.type),
    ),
  )) {
    let after = type === from?.type ? from.after : null
    for (;;) {
      if (pages++ === maxPages) {
        yield toLine({
          type: 'continue',
          cursor: `${type}:${after ?? ''}`,
          counts: Object.fromEntries(counts),
        })
        return
      }
      const rows = await run(page(ownerId, after))
      const lines = rows.flatMap(({ line }) => line ?? [])
      counts.set(type, (counts.get(type) ?? 0) + lines.length)
      if (lines.length > 0) yield `${lines.join('\n')}\n`
      const last = rows.at(-1)
      if (!last) break
      after = last.position
    }
  }
  yield toLine({ type: 'end', counts: Object.fromEntries(counts) })
}

const toLine = (value: object): string => `${JSON.stringify(value)}\n`
