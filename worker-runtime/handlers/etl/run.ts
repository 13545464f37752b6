import type { JobContext } from '../../handler-api.ts'
import type { RowBatch } from '../sources/row-batch.ts'
import { countBadRows, type Reject, tooManyBadRows } from './bad-rows.ts'
import { openSource } from './extract.ts'
import { sendBatches } from './load-http.ts'
import { openPostgresTarget } from './load-postgres.ts'
import { collectResult } from './load-result.ts'
import { collectOutput } from './output.ts'
import { createReport, describeCounts } from './report.ts'
import type { EtlPayload } from './schema.ts'
import type { Stage } from './stage.ts'
import type { EtlResult, Target } from './target.ts'
import { compileTransform } from './transform.ts'
import { createWriter } from './writer.ts'

/**
 * Reads rows, sends them through the steps, and loads what comes out, a batch at a time. The target is opened first: it knows
 * what earlier attempts have loaded, and most mistakes are found there before anything is read.
 */
export async function run(payload: EtlPayload, ctx: JobContext): Promise<EtlResult> {
  const startedAt = performance.now()
  const target = await openTarget(payload, ctx)
  if (target.result) {
    ctx.log.info('An earlier attempt has loaded everything')
    return target.result
  }
  const bad = countBadRows(target.progress.bad)
  const read = await copyRows(payload, ctx, target, bad)
  const { count, samples } = bad.totals()
  const loaded = target.loaded()
  const result = await target.finish({
    rows_read: read,
    rows_loaded: loaded,
    bad_rows: count,
    bad_row_samples: samples,
    duration_ms: Math.round(performance.now() - startedAt),
  })
  const done = describeCounts({ read, loaded, bad: count })
  ctx.progress(1, done)
  ctx.log.info(`Done: ${done}, in ${result.duration_ms} ms`)
  return result
}

function openTarget({ extract, load }: EtlPayload, ctx: JobContext): Promise<Target> | Target {
  if (load.to === 'http') return sendBatches(load, ctx)
  if (load.to === 'result') return collectResult()
  const isQuery = extract.from === 'postgres'
  const atomic = load.atomic ?? (isQuery && load.mode === 'append')
  // A query is answered from another snapshot each time: there is no place in it to go on from.
  return openPostgresTarget(load, ctx, { atomic, fresh: atomic || isQuery })
}

/** Answers how many rows were read. */
async function copyRows(
  { extract, transform, max_bad_rows }: EtlPayload,
  ctx: JobContext,
  target: Target,
  bad: ReturnType<typeof countBadRows>,
): Promise<number> {
  const reject: Reject = (row) => {
    bad.add(row)
    const totals = bad.totals()
    if (totals.count > max_bad_rows) throw tooManyBadRows(max_bad_rows, totals)
  }
  const writer = createWriter(target, reject)
  const output = collectOutput(target.batchSize)
  const steps = compileTransform(transform, output, reject, ctx.log.warn)
  const report = createReport(ctx)
  ctx.log.info(describeStart(target))
  const source = await openSource(extract, ctx)
  let read = 0
  for await (const batch of source.batches) {
    ctx.signal.throwIfAborted()
    read = pushBatch(batch, steps, reject) ?? read
    for (const records of output.take()) await writer.write(records)
    report.tick(source.fraction(read), { read, loaded: target.loaded(), bad: bad.totals().count })
    if (steps.isFull()) break
  }
  steps.end()
  for (const records of output.take()) await writer.write(records)
  await writer.end()
  return read
}

const describeStart = ({ progress: { rows } }: Target): string =>
  rows === 0 ? 'Begins with the first row' : `Goes on behind ${rows} rows that are loaded`

/** In the order of the source, so that it stops at the same row however the source is cut. Answers the last row's number. */
function pushBatch({ rows, bad }: RowBatch, steps: Stage, reject: Reject): number | undefined {
  let read: number | undefined
  let next = 0
  const rejectBefore = (number: number): void => {
    for (let row = bad[next]; row && row.number < number && !steps.isFull(); row = bad[++next]) {
      read = row.number
      reject(row)
    }
  }
  for (const record of rows) {
    rejectBefore(record.number)
    if (steps.isFull()) return read
    read = record.number
    steps.push(record)
  }
  rejectBefore(Number.POSITIVE_INFINITY)
  return read
}
