import { z } from 'zod'
import { listJobTypes } from '../../db/queries/job-types.ts'
import type { Run } from '../../db/query.ts'

/** The types that workers have announced, with a check for their payloads. Kept for a few seconds. */
export type JobTypes = {
  find(type: string): Promise<z.ZodType | undefined>
  names(): string[]
}

const FRESH_MS = 5_000
/** An unknown type looks again at once, but a flood of them asks the database only this often. */
const RETRY_MS = 500

export const createJobTypes = (run: Run, now: () => number = Date.now): JobTypes => {
  let schemas = new Map<string, z.ZodType>()
  let loadedAt = Number.NEGATIVE_INFINITY

  const load = async (): Promise<void> => {
    const rows = await run(listJobTypes())
    schemas = new Map(rows.map((row) => [row.type, z.fromJSONSchema(row.payload_schema)]))
    loadedAt = now()
  }

  return {
    find: async (type) => {
      const age = now() - loadedAt
      if (age > FRESH_MS || (!schemas.has(type) && age > RETRY_MS)) await load()
      return schemas.get(type)
    },
    names: () => [...schemas.keys()],
  }
}
