import { roughSize } from '../../../db/rules/json-values.ts'
import { lookUp, type Path, parsePath } from '../../../db/rules/paths.ts'
import { JobError } from '../../handler-api.ts'
import type { NumberedRow, Row } from '../sources/row-batch.ts'
import { compareValues } from './compare-values.ts'
import type { Stage } from './stage.ts'
import type { Step } from './transform-schema.ts'

const MAX_ROWS = 100_000
const MAX_CHARACTERS = 32 * 1024 * 1024
/** Short lists are not worth cutting after every row. */
const LEAST_HELD = 1000

type Held = {
  readonly record: NumberedRow
  readonly keys: unknown[]
  readonly place: number
  readonly size: number
}

/**
 * Sorts rows, which it holds in memory until the last one has come. If only the first few are wanted, it holds about twice
 * as many: whenever that many have come together it sorts them and forgets the rest, so a sort is paid once for many rows.
 */
export function sortRows(sort: NonNullable<Step['sort']>, limit: number | undefined, next: Stage): Stage {
  const readKeys = keyReader(sort)
  const compare = comparer(sort)
  const wanted = limit ?? Number.POSITIVE_INFINITY
  let held: Held[] = []
  let characters = 0
  let places = 0

  const cut = (): void => {
    held.sort(compare)
    for (const { size } of held.splice(wanted)) characters -= size
  }

  return {
    isFull: () => false,
    push: (record) => {
      const size = roughSize(record.row, MAX_CHARACTERS)
      held.push({ record, keys: readKeys(record.row), place: places++, size })
      characters += size
      if (held.length >= Math.max(LEAST_HELD, 2 * wanted)) cut()
      if (held.length > MAX_ROWS && held.length > wanted) cut()
      if (held.length > MAX_ROWS || characters > MAX_CHARACTERS) throw tooManyRows()
    },
    end: () => {
      cut()
      const sorted = held
      held = []
      for (const { record } of sorted) next.push(record)
      next.end()
    },
  }
}

const keyReader = (sort: NonNullable<Step['sort']>): ((row: Row) => unknown[]) => {
  const paths = sort.map(({ by }) => parsePath(by) as Path)
  return (row) => paths.map((path) => lookUp({ $: row }, path) ?? undefined)
}

/** What is not there comes last in either order; of equals the first stays first. */
const comparer = (sort: NonNullable<Step['sort']>) => {
  const signs = sort.map(({ order }) => (order === 'desc' ? -1 : 1))
  return (a: Held, b: Held): number => {
    for (let index = 0; index < signs.length; index++) {
      const left = a.keys[index]
      const right = b.keys[index]
      if (left === undefined && right === undefined) continue
      if (left === undefined) return 1
      if (right === undefined) return -1
      const order = compareValues(left, right)
      if (order !== 0) return order * (signs[index] as number)
    }
    return a.place - b.place
  }
}

const tooManyRows = (): JobError =>
  new JobError(
    'too_many_rows_to_sort',
    `More rows than can be sorted in memory (${MAX_ROWS}, or ${MAX_CHARACTERS / 1024 / 1024} MiB). Put a limit right ` +
      'behind the sort, filter or group first, or let a database do it: load the rows and sort them with a query.',
    { permanent: true },
  )
