/**
 * An export as newline-delimited JSON, read page by page as the client consumes it: memory holds one page,
 * however many jobs there are. Each page is read in its own transaction, which enters again. So a user who is
 * removed meanwhile gets no more pages, and changes made while the export runs may or may not be included.
 * The last line marks the export as complete; without it, it was cut off.
 */
import type { ExportStep } from '../../db/queries/export.ts'
import type { Run } from '../../db/query.ts'

/** Where an export continues: after a position within a type of line, or at the start of that type. */
export type ExportCursor = { type: string; after: string | null }

/** A Worker may make 1,000 subrequests per request. */
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

/**
 * Parses a cursor such as `job:0199…` from the last line of an export. Returns undefined if it does not fit
 * these steps.
 */
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
