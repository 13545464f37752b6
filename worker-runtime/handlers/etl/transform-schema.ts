import { z } from 'zod'
import { type Condition, checkCondition } from '../../../db/rules/conditions.ts'
import { checkTemplate } from '../../../db/rules/templates.ts'
import { judgedBy, pathField } from './path-field.ts'

const MAX_STEPS = 50
const MAX_NAMES = 1000

const name = z.string().min(1).max(200)
const names = z.array(name).min(1).max(MAX_NAMES)

export const CASTS = ['string', 'number', 'integer', 'boolean', 'timestamp', 'date', 'json'] as const

/** `{"label": "{{ $.country }}-{{ $.city }}"}`: names of fields, and what becomes of them. */
const fields = z.record(name, judgedBy<unknown>(checkTemplate))

const aggregate = z
  .strictObject({
    count: z.union([z.literal(true), pathField]).optional(),
    sum: pathField.optional(),
    avg: pathField.optional(),
    min: pathField.optional(),
    max: pathField.optional(),
  })
  .refine(hasOneKey, 'needs exactly one of count, sum, avg, min and max')

const STEPS = {
  filter: judgedBy<Condition>(checkCondition).describe('Keeps the rows for which this condition holds.'),
  cast: z.record(name, z.enum(CASTS)).describe('Types of fields. An empty text becomes null.'),
  rename: z.record(name, name).describe('Old names and new ones.'),
  keep: names.describe('Only these fields stay.'),
  drop: names.describe('These fields go.'),
  derive: fields.describe('Fields to add or to replace.'),
  map: fields.describe('A new row in place of the old one.'),
  group: z
    .strictObject({
      by: z.array(name).max(20).default([]),
      aggregate: z.record(name, aggregate),
    })
    .describe('One row for all that have the same values in these fields.'),
  sort: z
    .array(z.strictObject({ by: pathField, order: z.enum(['asc', 'desc']).default('asc') }))
    .min(1)
    .max(10),
  limit: z.int().min(0).describe('Only so many rows, the first ones.'),
}

const KINDS = Object.keys(STEPS) as (keyof typeof STEPS)[]

// Not a union of ten: its errors would say that nothing fits instead of what is wrong.
const step = z
  .strictObject(STEPS)
  .partial()
  .refine(hasOneKey, `needs exactly one of ${KINDS.join(', ')}`)

export const transform = z.array(step).max(MAX_STEPS).default([])

export type Step = z.output<typeof step>
export type Aggregate = z.output<typeof aggregate>
export type Cast = (typeof CASTS)[number]

function hasOneKey(value: object): boolean {
  return Object.values(value).filter((part) => part !== undefined).length === 1
}
