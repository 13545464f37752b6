import type { Query } from '../query.ts'

/**
 * Two statements of one transaction that make Postgres write to its disk without privileges on any table and
 * without leaving data behind: a result that does not fit into `work_mem` is spilled to a temporary file. If
 * the disk is full, that fails with 53100.
 */
export const probeDisk = (): [Query<unknown>, Query<unknown>] => [
  {
    name: 'limit-memory',
    text: `
    select set_config('work_mem', '64kB', true)`,
    values: [],
  },
  {
    name: 'spill-to-disk',
    text: `
    select count(*)::integer as spilled
    from generate_series(1, 10000)`,
    values: [],
  },
]
