import { lookUp, type Path, parsePath } from '../../../db/rules/paths.ts'
import { toNumber } from '../sources/number.ts'
import type { Row } from '../sources/row-batch.ts'
import { compareValues } from './compare-values.ts'
import type { Aggregate } from './transform-schema.ts'

export type Accumulator = { add(input: unknown): void; result(): unknown }

/** How one aggregate reads its input from a row, or says why it cannot, and how a group of them begins. */
export function accumulatorFor(aggregate: Aggregate): {
  read: (row: Row) => unknown
  start: () => Accumulator
} {
  if (aggregate.sum) return { read: numberAt(aggregate.sum), start: sum }
  if (aggregate.avg) return { read: numberAt(aggregate.avg), start: average }
  if (aggregate.min) return { read: orderedAt(aggregate.min), start: () => extreme(-1) }
  if (aggregate.max) return { read: orderedAt(aggregate.max), start: () => extreme(1) }
  if (typeof aggregate.count === 'string') return { read: valueAt(aggregate.count), start: count }
  return { read: () => true, start: count }
}

/** Null and what is not there count in no aggregate, as in SQL. */
const valueAt = (text: string): ((row: Row) => unknown) => {
  const path = parsePath(text) as Path
  return (row) => lookUp({ $: row }, path) ?? undefined
}

const numberAt = (text: string): ((row: Row) => number | undefined | Error) => {
  const read = valueAt(text)
  return (row) => {
    const value = read(row)
    return value === undefined ? undefined : (toNumber(value) ?? new TypeError(`needs a number at ${text}`))
  }
}

const orderedAt = (text: string): ((row: Row) => unknown) => {
  const read = valueAt(text)
  return (row) => {
    const value = read(row)
    return typeof value === 'object' ? new TypeError(`needs a number or a text at ${text}`) : value
  }
}

function count(): Accumulator {
  let counted = 0
  return {
    add: (input) => {
      if (input !== undefined) counted += 1
    },
    result: () => counted,
  }
}

/** With Neumaier's correction: a million amounts of 0.1 are 100000 and not 100000.00000133288. */
function sum(): Accumulator & { count(): number } {
  let total = 0
  let correction = 0
  let counted = 0
  return {
    add: (input) => {
      if (typeof input !== 'number') return
      const next = total + input
      correction += Math.abs(total) >= Math.abs(input) ? total - next + input : input - next + total
      total = next
      counted += 1
    },
    count: () => counted,
    result: () => (counted === 0 ? null : total + correction),
  }
}

function average(): Accumulator {
  const { add, count, result } = sum()
  return { add, result: () => (count() === 0 ? null : (result() as number) / count()) }
}

/** The least value for -1, the greatest for 1. */
function extreme(sign: -1 | 1): Accumulator {
  let found: unknown
  return {
    add: (input) => {
      if (input === undefined) return
      if (found === undefined || sign * compareValues(input, found) > 0) found = input
    },
    result: () => found ?? null,
  }
}
