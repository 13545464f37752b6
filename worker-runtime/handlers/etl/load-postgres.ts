import { type JobContext, JobError } from '../../handler-api.ts'
import { isDatabaseError, refuseStatement } from '../sources/postgres-error.ts'
import { countBadRows } from './bad-rows.ts'
import { loadAtOnce } from './load-at-once.ts'
import { loadByBatch } from './load-by-batch.ts'
import type { PostgresLoad } from './load-schema.ts'
import type { LoadMode } from './load-statements.ts'
import { openLoad } from './open-load.ts'
import type { Target } from './target.ts'

/**
 * Loads into a table: each batch is a transaction, or with `atomic` all of them are one. A `fresh` load begins with the
 * first row, whatever earlier attempts have loaded.
 */
export async function openPostgresTarget(
  load: PostgresLoad,
  ctx: JobContext,
  options: { atomic: boolean; fresh: boolean },
): Promise<Target> {
  const open = await openLoad(load, ctx, options)
  const mode: LoadMode = load.key ? { mode: 'upsert', key: load.key } : { mode: 'append' }
  const holder = { jobId: ctx.jobId, token: ctx.fencingToken }
  const loading = { ...open, mode, holder, refused: countBadRows(open.progress.bad) }
  const strategy = options.atomic ? loadAtOnce(loading) : loadByBatch(loading)
  const explain = (error: unknown): never => {
    if (!isDatabaseError(error)) throw error
    if (error.code === NO_UNIQUE_KEY) throw notUnique(load)
    throw refuseStatement(`Cannot load into ${load.table}`, error)
  }
  return {
    batchSize: load.batch_size,
    progress: open.progress,
    result: open.result,
    load: (batch, reject) => strategy.load(batch, reject).catch(explain),
    loaded: strategy.loaded,
    finish: (result) => strategy.finish(result).catch(explain),
  }
}

const NO_UNIQUE_KEY = '42P10'

const notUnique = ({ table, key = [] }: PostgresLoad): JobError =>
  new JobError(
    'database_error',
    `Cannot upsert into ${table} by ${key.join(', ')}: it has no unique index on exactly these columns. ` +
      `Create one, or name others as the key. [${NO_UNIQUE_KEY}]`,
    { permanent: true },
  )
