import { z } from 'zod'
import { type Fault, parsePath } from '../../../db/rules/paths.ts'

/** A row, or a document of rows, is all that paths can look into. */
export const ROOTS = ['$'] as const

export const pathField = z
  .string()
  .refine((text) => parsePath(text)?.root === '$', 'is not a path such as "$.amount"')

/** A value that a rule of its own judges: it says what is wrong, and where in the value. */
export const judgedBy = <T>(check: (value: unknown, roots: readonly string[]) => Fault[]) =>
  z.custom<T>().superRefine((value, refinement) => {
    for (const { path, message } of check(value, ROOTS)) {
      refinement.addIssue({ code: 'custom', path: [...path], message })
    }
  })
