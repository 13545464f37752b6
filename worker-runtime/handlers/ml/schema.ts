import { z } from 'zod'
import { headersField, urlField } from '../http/fields.ts'
import { csvField, encodingField, queryFields } from '../sources/fields.ts'

/** Of a series: some megabytes of numbers, and what is made of them. */
export const MAX_VALUES = 200_000
/** Differences and their squares must stay numbers. */
export const MAX_SIZE = 1e100
/** Of a network whose training fits in a checkpoint. */
export const MAX_HIDDEN = 24

const column = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe('The column of the values; it can be left out if there is only one.')

const inline = z.strictObject({
  from: z.literal('inline'),
  values: z
    .array(z.number().min(-MAX_SIZE).max(MAX_SIZE).nullable())
    .max(MAX_VALUES)
    .describe('In order of time, evenly spaced; null where one is missing.'),
})

const http = z.strictObject({
  from: z.literal('http'),
  url: urlField,
  headers: headersField.optional(),
  column,
  csv: csvField.optional(),
  encoding: encodingField.optional(),
})

const postgres = z.strictObject({ from: z.literal('postgres'), ...queryFields, column })

/** docs/ml.md has an example of each source. */
export const schema = z
  .strictObject({
    series: z.discriminatedUnion('from', [inline, http, postgres]),
    horizon: z.int().min(1).max(1000).describe('How many values ahead.'),
    holdout: z
      .int()
      .min(1)
      .max(100_000)
      .optional()
      .describe('Values at the end that the error is measured on: one horizon at least, two if absent.'),
    season: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Values after which the series repeats itself; 1 for never. Found out if absent.'),
    missing: z
      .enum(['refuse', 'interpolate'])
      .default('refuse')
      .describe('What a missing value does: fail the job, or be put on the line between its neighbours.'),
    epochs: z.int().min(1).max(1000).default(60).describe('At most; it stops when it gets no better.'),
    hidden: z.int().min(4).max(MAX_HIDDEN).default(12).describe('Units in each of the two layers.'),
    seed: z.int().min(0).max(4_294_967_295).default(1).describe('The same data and seed, the same forecast.'),
  })
  .refine(({ holdout, horizon }) => holdout === undefined || holdout >= horizon, {
    path: ['holdout'],
    message: 'is shorter than the horizon: no whole forecast could be judged on it',
  })

export type MlPayload = z.output<typeof schema>
