import { groupRows, insertGroup } from './insert-rows.ts'
import { begin, finish, type Loading, move, refuser } from './loading.ts'
import type { Target } from './target.ts'

/**
 * All batches are one transaction: its rows are there when the load is finished, or not at all. The load is looked at only
 * at the end, so that an attempt that was left behind blocks none that comes later; whoever commits first has loaded.
 */
export function loadAtOnce(loading: Loading): Pick<Target, 'load' | 'loaded' | 'finish'> {
  const { connection, refused } = loading
  let begun = false
  let last = { from: 0, to: 0, digest: '' }
  return {
    load: async (batch, reject) => {
      if (!begun) await begin(loading)
      begun = true
      const refuse = refuser(loading, reject)
      for (const group of groupRows(loading, batch.records, refuse)) await insertGroup(loading, group, refuse)
      last = { from: 0, to: batch.to, digest: batch.digest }
    },
    loaded: () => last.to - refused.totals().count,
    finish: async (result) => {
      if (!begun) await begin(loading)
      await move(loading, last)
      await finish(loading, last.to, result)
      await connection.query('commit')
      return result
    },
  }
}
