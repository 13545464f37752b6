import { z } from 'zod'
import { headersField, urlField } from '../http/fields.ts'
import { connectionName } from '../sources/fields.ts'

const identifier = z.string().min(1).max(63)

const batchSize = z.int().min(1).max(10_000).default(1000).describe('Rows that are loaded at a time.')

const postgres = z
  .strictObject({
    to: z.literal('postgres'),
    connection: connectionName,
    table: z
      .string()
      .max(127)
      .regex(/^[^.]+(\.[^.]+)?$/, 'is not the name of a table, such as "orders" or "public.orders"'),
    mode: z.enum(['append', 'upsert']).default('append'),
    key: z
      .array(identifier)
      .min(1)
      .max(32)
      .optional()
      .describe('The columns of a unique index, to upsert by.'),
    batch_size: batchSize,
    atomic: z
      .boolean()
      .optional()
      .describe(
        'All rows in one transaction, or none. True for rows of a query that are appended, else false.',
      ),
  })
  .superRefine(({ mode, key }, refinement) => {
    const message = mode === 'upsert' ? 'is needed to upsert' : 'goes with the mode "upsert"'
    if ((mode === 'upsert') !== (key !== undefined)) {
      refinement.addIssue({ code: 'custom', path: ['key'], message })
    }
  })

const http = z.strictObject({
  to: z.literal('http'),
  url: urlField,
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST'),
  headers: headersField
    .refine((headers) => Object.keys(headers).every((name) => name.toLowerCase() !== 'idempotency-key'), {
      path: ['idempotency-key'],
      message: 'is set by the job, for each batch another one',
    })
    .optional(),
  format: z.enum(['json', 'ndjson']).default('json').describe('A JSON array, or one object a line.'),
  batch_size: batchSize,
})

const result = z.strictObject({ to: z.literal('result') })

export const load = z.discriminatedUnion('to', [postgres, http, result])

export type Load = z.output<typeof load>
export type PostgresLoad = z.output<typeof postgres>
export type HttpLoad = z.output<typeof http>
