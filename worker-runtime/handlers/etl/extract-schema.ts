import { z } from 'zod'
import { headersField, urlField } from '../http/fields.ts'
import { csvField, encodingField, queryFields } from '../sources/fields.ts'
import { pathField } from './path-field.ts'

const inline = z.strictObject({
  from: z.literal('inline'),
  rows: z.array(z.record(z.string(), z.unknown())).max(100_000),
})

const http = z
  .strictObject({
    from: z.literal('http'),
    url: urlField,
    headers: headersField.optional(),
    format: z.enum(['csv', 'ndjson', 'json']),
    csv: csvField.optional(),
    rows_at: pathField.optional().describe('Where the array of rows is in a JSON document.'),
    encoding: encodingField.optional(),
  })
  .superRefine(({ format, csv, rows_at }, refinement) => {
    const misplaced = { csv: csv && format !== 'csv', rows_at: rows_at !== undefined && format !== 'json' }
    for (const [field, isMisplaced] of Object.entries(misplaced)) {
      const message = `does not go with the format "${format}"`
      if (isMisplaced) refinement.addIssue({ code: 'custom', path: [field], message })
    }
  })

const postgres = z.strictObject({
  from: z.literal('postgres'),
  ...queryFields,
})

export const extract = z.discriminatedUnion('from', [inline, http, postgres])

export type Extract = z.output<typeof extract>
