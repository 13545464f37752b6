import { z } from 'zod'
import { CONNECTION_NAME } from '../../handler-api.ts'
import { decoderFor } from '../http/decoder.ts'

const character = z
  .string()
  .length(1)
  .regex(/[^\r\n]/, 'cannot be a line end')
const columnName = z.string().min(1).max(200)

/** How a CSV file is written. */
export const csvField = z
  .strictObject({
    delimiter: character.optional().describe('A comma if absent; "\\t" for tabs.'),
    quote: character.optional().describe('A double quote if absent.'),
    header: z.boolean().optional().describe('Whether the first line names the columns; true if absent.'),
    columns: z
      .array(columnName)
      .min(1)
      .max(2000)
      .optional()
      .describe('Names of the columns, instead of those of the header.'),
    nulls: z
      .array(z.string().max(100))
      .max(20)
      .optional()
      .describe('Fields that are null; only the empty one if absent.'),
    trim: z.boolean().optional().describe('Removes white space around fields without quotes.'),
  })
  .refine(({ delimiter = ',', quote = '"' }) => delimiter !== quote, {
    path: ['quote'],
    message: 'is the delimiter too',
  })

/** Of a text. */
export const encodingField = z
  .string()
  .refine(
    (label) => decoderFor(label) !== undefined,
    'is not the name of an encoding, such as "windows-1252"',
  )
  .describe('That of the answer, or UTF-8, if absent.')

/** As operators name them. */
export const connectionName = z
  .string()
  .regex(CONNECTION_NAME, 'is not the name of a connection, such as "warehouse"')

/** A query of a database that the operator has named. */
export const queryFields = {
  connection: connectionName,
  query: z.string().min(1).max(100_000).describe('One statement that reads.'),
  params: z
    .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .max(100)
    .default([])
    .describe('Values of $1, $2 and so on.'),
}
