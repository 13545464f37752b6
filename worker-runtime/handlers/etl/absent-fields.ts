import type { Condition } from '../../../db/rules/conditions.ts'
import { parsePath } from '../../../db/rules/paths.ts'
import { before, type Stage } from './stage.ts'
import type { Step } from './transform-schema.ts'

/** Warns, once all rows have come, of fields that a step names and no row had: most often a name that is misspelt. */
export function watchFields(step: Step, place: string, next: Stage, warn: (message: string) => void): Stage {
  const absent = new Set(namedBy(step))
  if (absent.size === 0) return next
  let fields: string[] | undefined
  return before(next, {
    push: (record) => {
      if (absent.size > 0) {
        fields ??= Object.keys(record.row)
        for (const name of absent) if (Object.hasOwn(record.row, name)) absent.delete(name)
      }
      next.push(record)
    },
    end: () => {
      if (fields && absent.size > 0) warn(describe([...absent], place, fields))
      next.end()
    },
  })
}

const namedBy = (step: Step): readonly string[] => {
  if (step.filter) return fieldsOf(step.filter)
  if (step.group) return step.group.by
  return step.keep ?? step.drop ?? Object.keys(step.cast ?? step.rename ?? {})
}

const fieldsOf = (condition: Condition): string[] => {
  if ('all' in condition) return condition.all.flatMap(fieldsOf)
  if ('any' in condition) return condition.any.flatMap(fieldsOf)
  if ('not' in condition) return fieldsOf(condition.not)
  const [first] = parsePath(condition.path)?.keys ?? []
  return typeof first === 'string' ? [first] : []
}

const MOST_SHOWN = 30

const describe = (absent: string[], place: string, fields: string[]): string => {
  const shown = fields.slice(0, MOST_SHOWN).join(', ')
  const more = fields.length > MOST_SHOWN ? ', …' : ''
  return `No row had ${absent.map((name) => `"${name}"`).join(', ')}, which ${place} names. The first one had: ${shown}${more}`
}
