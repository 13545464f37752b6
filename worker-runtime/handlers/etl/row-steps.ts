import { type Condition, compileCondition } from '../../../db/rules/conditions.ts'
import { compileTemplate, type Rendered } from '../../../db/rules/templates.ts'
import { type NumberedRow, type Row, setField } from '../sources/row-batch.ts'
import { describeRow, type Reject } from './bad-rows.ts'
import { CastError, casterFor } from './cast.ts'
import { before, type Stage } from './stage.ts'
import type { Cast } from './transform-schema.ts'

export function filterRows(condition: Condition, next: Stage): Stage {
  const holds = compileCondition(condition)
  return before(next, {
    push: (record) => {
      if (holds({ $: record.row })) next.push(record)
    },
  })
}

export function castRows(casts: Record<string, Cast>, next: Stage, reject: Reject): Stage {
  const casters = Object.entries(casts).map(([name, cast]) => ({ name, toType: casterFor(cast) }))
  return before(next, {
    push: ({ number, row }) => {
      const cast = { ...row }
      try {
        for (const { name, toType } of casters) {
          if (Object.hasOwn(cast, name)) cast[name] = toType(cast[name], name)
        }
      } catch (error) {
        if (!(error instanceof CastError)) throw error
        return reject({ number, reason: error.message, text: describeRow(row) })
      }
      next.push({ number, row: cast })
    },
  })
}

export function renameFields(names: Record<string, string>, next: Stage): Stage {
  const renamed = new Map(Object.entries(names))
  return changeRows(next, (row) => {
    const changed: Row = {}
    for (const name of Object.keys(row)) setField(changed, renamed.get(name) ?? name, row[name])
    return changed
  })
}

export function keepFields(names: readonly string[], next: Stage): Stage {
  return changeRows(next, (row) => {
    const changed: Row = {}
    for (const name of names) if (Object.hasOwn(row, name)) setField(changed, name, row[name])
    return changed
  })
}

export function dropFields(names: readonly string[], next: Stage): Stage {
  const dropped = new Set(names)
  return changeRows(next, (row) => {
    const changed: Row = {}
    for (const name of Object.keys(row)) if (!dropped.has(name)) setField(changed, name, row[name])
    return changed
  })
}

const changeRows = (next: Stage, change: (row: Row) => Row): Stage =>
  before(next, { push: ({ number, row }) => next.push({ number, row: change(row) }) })

/** All fields see the row as it was before this step, whatever their order. */
export function deriveFields(fields: Record<string, unknown>, next: Stage, reject: Reject): Stage {
  return renderRows(fields, next, reject, (row, derived) => ({ ...row, ...derived }))
}

export function mapRows(fields: Record<string, unknown>, next: Stage, reject: Reject): Stage {
  return renderRows(fields, next, reject, (_row, mapped) => mapped)
}

function renderRows(
  fields: Record<string, unknown>,
  next: Stage,
  reject: Reject,
  combine: (row: Row, rendered: Row) => Row,
): Stage {
  const render = compileTemplate(fields, { defaultForNull: true })
  return before(next, {
    push: ({ number, row }: NumberedRow) => {
      const rendered = render({ $: row })
      if (rendered.ok) next.push({ number, row: combine(row, rendered.value as Row) })
      else reject({ number, reason: describeFault(rendered), text: describeRow(row) })
    },
  })
}

function describeFault({ faults: [fault] }: Extract<Rendered, { ok: false }>): string {
  return fault ? `${fault.path.join('.')} ${fault.message}`.trim() : 'cannot be rendered'
}
