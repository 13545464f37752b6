import { ask } from '../sources/ask.ts'
import { groupRows, insertGroup, isDataError } from './insert-rows.ts'
import { loadBatch } from './load-statements.ts'
import { begin, finish, type Loading, move, refuser } from './loading.ts'
import { superseded } from './open-load.ts'
import type { RowGroup } from './row-groups.ts'
import type { OutputBatch, Target } from './target.ts'

/**
 * Each batch is a transaction, in which the load also moves on: wherever an attempt is interrupted, the next one goes on
 * behind the last batch that is there. The usual batch is one statement. One with rows that the database refuses, or with
 * rows of different fields, is a transaction of several.
 */
export function loadByBatch(loading: Loading): Pick<Target, 'load' | 'loaded' | 'finish'> {
  const { connection, refused } = loading
  let rows = loading.progress.rows
  return {
    load: async (batch, reject) => {
      const refusedBefore = refused.totals().count
      const refuse = refuser(loading, reject)
      const groups = groupRows(loading, batch.records, refuse)
      const [only, another] = groups
      const isUsual = only && !another && refused.totals().count === refusedBefore
      if (!isUsual || !(await loadWhole(loading, batch, only))) {
        await begin(loading)
        try {
          for (const group of groups) await insertGroup(loading, group, refuse)
          await move(loading, batch)
          await connection.query('commit')
        } catch (error) {
          await connection.query('rollback').catch(() => {})
          throw error
        }
      }
      rows = batch.to
    },
    loaded: () => rows - refused.totals().count,
    finish: async (result) => {
      await finish(loading, rows, result)
      return result
    },
  }
}

/** False if the database refuses some of its rows: then it has taken none. */
async function loadWhole(
  { connection, holder, table, mode }: Loading,
  batch: OutputBatch,
  { columns }: RowGroup,
): Promise<boolean> {
  try {
    const rows = { table, mode, columns, json: batch.json }
    const [answer] = await ask(connection, loadBatch({ ...holder, ...batch }, rows))
    if (answer?.moved !== 1) throw superseded()
    return true
  } catch (error) {
    if (isDataError(error)) return false
    throw error
  }
}
