import type { Query } from '../query.ts'

/**
 * Two statements of one transaction that make Postgres write to its disk, without a right to any table and without a trace:
 * what does not fit into so little memory is spilled to a temporary file. On a full disk that fails with 53100.
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
