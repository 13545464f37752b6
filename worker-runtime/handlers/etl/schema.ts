import { z } from 'zod'
import { extract } from './extract-schema.ts'
import { load } from './load-schema.ts'
import { transform } from './transform-schema.ts'

/** docs/etl.md has an example of each part. */
export const schema = z
  .strictObject({
    extract,
    transform,
    load,
    max_bad_rows: z
      .int()
      .min(0)
      .default(0)
      .describe('The job fails when more rows than this cannot be read, changed or loaded.'),
  })
  .superRefine(({ extract, load }, refinement) => {
    // A second look at a database sees other rows: what an interrupted attempt has loaded must not be there.
    if (extract.from !== 'postgres' || load.to !== 'postgres') return
    if (load.mode === 'upsert' || load.atomic !== false) return
    refinement.addIssue({
      code: 'custom',
      path: ['load', 'atomic'],
      message: 'rows of a query are appended in one transaction; leave it out, or use the mode "upsert"',
    })
  })

export type EtlPayload = z.output<typeof schema>
