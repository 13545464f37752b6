import type { Query } from '../../db/query.ts'
import { createDatabase } from '../../functions/database.ts'

/** Runs statements on workerd, through the functions' own driver, for tests that compare it with `pg`. */
export default {
  async fetch(request: Request, env: { DATABASE_URL: string; NEON_GATEWAY: string }): Promise<Response> {
    const database = createDatabase({ url: env.DATABASE_URL, gateway: env.NEON_GATEWAY })
    const rows = await database.run((await request.json()) as Query<unknown>)
    return Response.json(tag(rows))
  },
}

/** JSON that keeps Date apart from string: the point is that both drivers give the same JavaScript values. */
const tag = (value: unknown): unknown => {
  if (value instanceof Date) return { $date: value.toISOString() }
  if (Array.isArray(value)) return value.map(tag)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, tag(child)]))
}
