import { z } from '@hono/zod-openapi'

/** Keyset pagination: a cursor is the key of the last row seen, in a form that clients do not pick apart. */
export const pageFields = (position: z.ZodType<string>) => ({
  cursor: z
    .string()
    .max(200)
    .transform((cursor, ctx) => {
      const parsed = position.safeParse(decode(cursor))
      if (parsed.success) return parsed.data
      ctx.addIssue({ code: 'custom', message: 'Is not a cursor of this list' })
      return z.NEVER
    })
    .optional()
    .openapi({ type: 'string', description: '`next_cursor` of the page before.' }),
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'Must be a whole number from 1 to 200')
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 200, 'Must be a whole number from 1 to 200')
    .default(50)
    .openapi({ type: 'integer', minimum: 1, maximum: 200 }),
})

const GREATEST_ID = 2n ** 63n - 1n

/**
 * The position in lists ordered by a bigint. A pipe, so that a value that is not a number never reaches
 * `BigInt`.
 */
export const idPosition = z
  .string()
  .regex(/^\d{1,19}$/)
  .pipe(z.string().refine((id) => BigInt(id) <= GREATEST_ID))

export const pageQuery = (position: z.ZodType<string>) => z.strictObject(pageFields(position))

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next_cursor: z.string().nullable() })

/** Rows were asked for with `limit + 1`: the one too many says that there is a next page. */
export const toPage = <Row, Item>(
  rows: Row[],
  limit: number,
  view: { position: (row: Row) => string; item: (row: Row) => Item },
): { items: Item[]; next_cursor: string | null } => {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(view.item),
    next_cursor: rows.length > limit && last !== undefined ? encodeCursor(view.position(last)) : null,
  }
}

/** What `cursor` of `pageFields` reads. */
export const encodeCursor = (position: string): string =>
  btoa(position).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

const decode = (cursor: string): string | undefined => {
  try {
    return atob(cursor.replaceAll('-', '+').replaceAll('_', '/'))
  } catch {
    return undefined
  }
}
