import { JobError } from '../../handler-api.ts'
import { type NumberedRow, type Row, setField } from '../sources/row-batch.ts'
import { type Accumulator, accumulatorFor } from './aggregates.ts'
import { describeRow, type Reject } from './bad-rows.ts'
import type { Stage } from './stage.ts'
import type { Step } from './transform-schema.ts'

const MAX_GROUPS = 100_000
const MAX_KEY_CHARACTERS = 16 * 1024 * 1024

type Group = { readonly values: unknown[]; readonly accumulators: Accumulator[] }

/** One row for each combination of values, in the order in which they are first seen. The groups are held in memory. */
export function groupRows({ by, aggregate }: NonNullable<Step['group']>, next: Stage, reject: Reject): Stage {
  const aggregates = Object.entries(aggregate).map(([name, one]) => ({ name, ...accumulatorFor(one) }))
  const groups = new Map<string, Group>()
  let keyCharacters = 0

  const add = (key: string, values: unknown[]): Group => {
    keyCharacters += key.length
    if (groups.size === MAX_GROUPS || keyCharacters > MAX_KEY_CHARACTERS) throw tooManyGroups(by)
    const group = { values, accumulators: aggregates.map(({ start }) => start()) }
    groups.set(key, group)
    return group
  }
  // All rows together are one group, also if there are none of them.
  if (by.length === 0) add(keyOf([]), [])

  return {
    isFull: () => false,
    push: ({ number, row }: NumberedRow) => {
      const inputs: unknown[] = []
      // All of them before the first is added: a bad row counts in none.
      for (const { name, read } of aggregates) {
        const input = read(row)
        if (input instanceof Error) {
          return reject({ number, reason: `${name} ${input.message}`, text: describeRow(row) })
        }
        inputs.push(input)
      }
      const values = by.map((name) => (Object.hasOwn(row, name) ? row[name] : null))
      const key = keyOf(values)
      const { accumulators } = groups.get(key) ?? add(key, values)
      for (let index = 0; index < accumulators.length; index++) accumulators[index]?.add(inputs[index])
    },
    end: () => {
      let number = 0
      for (const { values, accumulators } of groups.values()) {
        const row: Row = {}
        for (const [index, name] of by.entries()) setField(row, name, values[index])
        for (const [index, { name }] of aggregates.entries()) {
          setField(row, name, accumulators[index]?.result())
        }
        next.push({ number: ++number, row })
      }
      groups.clear()
      next.end()
    },
  }
}

/** A text alone is its own key, with a sign that no JSON begins with. */
const keyOf = (values: unknown[]): string =>
  values.length === 1 && typeof values[0] === 'string' ? `=${values[0]}` : JSON.stringify(values)

const tooManyGroups = (by: readonly string[]): JobError =>
  new JobError(
    'too_many_groups',
    `There are more groups by ${by.join(', ')} than fit into memory (${MAX_GROUPS}). Group by fields with fewer values, ` +
      'filter first, or let a database do it: load the rows and group them with a query.',
    { permanent: true },
  )
