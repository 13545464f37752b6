import type { Query } from '../../db/query.ts'
import { createDatabase } from '../../functions/database.ts'

/** Runs statements on workerd, through the functions' own driver, for tests that compare it with `pg`. */
export default {
  async fetch(request: Request, env: { DATABASE_URL: string; NEON_GATEWAY: string }): Promise<Response> {
    const database = createDatabase({ url: env.DATABASE_URL, gateway: env.NEON_GATEWAY })
    const rows = await database.run((await request.json()) as Query<unknown>)
    return Response.json(rows.map(withoutDates))
  },
}

/** A Date would become the same JSON as the text that a driver has to answer. */
const withoutDates = (row: unknown): unknown => {
  if (Object.values(row as object).some((value) => value instanceof Date))
    throw new Error('Times come as text')
  return row
}
