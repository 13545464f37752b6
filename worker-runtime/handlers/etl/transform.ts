import type { NumberedRow } from '../sources/row-batch.ts'
import { watchFields } from './absent-fields.ts'
import type { Reject } from './bad-rows.ts'
import { groupRows } from './group.ts'
import {
  castRows,
  deriveFields,
  dropFields,
  filterRows,
  keepFields,
  mapRows,
  renameFields,
} from './row-steps.ts'
import { sortRows } from './sort.ts'
import { before, type Stage } from './stage.ts'
import type { Step } from './transform-schema.ts'

/** The steps of a job, the first one first; what comes out of the last one goes to `next`. */
export function compileTransform(
  steps: readonly Step[],
  next: Stage,
  reject: Reject,
  warn: (message: string) => void,
): Stage {
  return steps.reduceRight((after, step, index) => {
    const stage = compileStep(step, steps[index + 1], after, reject)
    return watchFields(step, `transform.${index}`, stage, warn)
  }, next)
}

function compileStep(step: Step, following: Step | undefined, next: Stage, reject: Reject): Stage {
  if (step.filter) return filterRows(step.filter, next)
  if (step.cast) return castRows(step.cast, next, reject)
  if (step.rename) return renameFields(step.rename, next)
  if (step.keep) return keepFields(step.keep, next)
  if (step.drop) return dropFields(step.drop, next)
  if (step.derive) return deriveFields(step.derive, next, reject)
  if (step.map) return mapRows(step.map, next, reject)
  if (step.group) return groupRows(step.group, next, reject)
  // With a limit behind it, a sort needs to hold no more rows than that.
  if (step.sort) return sortRows(step.sort, following?.limit, next)
  return limitRows(step.limit ?? 0, next)
}

function limitRows(limit: number, next: Stage): Stage {
  let passed = 0
  return before(next, {
    isFull: () => passed >= limit || next.isFull(),
    push: (record: NumberedRow) => {
      if (passed >= limit) return
      passed += 1
      next.push(record)
    },
  })
}
