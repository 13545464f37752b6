import { z } from 'zod'
import { listJobTypes } from '../../db/queries/job-types.ts'
import type { Run } from '../../db/query.ts'
import { log } from '../http/log.ts'

/** The types that workers have announced. Kept for a few seconds. */
export type JobTypes = {
  find(type: string): Promise<JobType | undefined>
  names(): string[]
}

export type JobType = {
  readonly payload: z.ZodType
  /** What the handler's schema says of a field, `z.string().describe('…')`. */
  describe(path: readonly PropertyKey[]): string | undefined
}

const FRESH_MS = 5_000
/** An unknown type looks again at once, but a flood of them asks the database only this often. */
const RETRY_MS = 500

export const createJobTypes = (run: Run): JobTypes => {
  let types = new Map<string, JobType>()
  let loadedAt = Number.NEGATIVE_INFINITY

  const load = async (): Promise<void> => {
    const rows = await run(listJobTypes({ after: null, limit: null }))
    types = new Map(rows.map((row) => [row.type, toJobType(row.payload_schema)]))
    loadedAt = Date.now()
  }

  return {
    find: async (type) => {
      const age = Date.now() - loadedAt
      if (age > FRESH_MS || (!types.has(type) && age > RETRY_MS)) await load()
      return types.get(type)
    },
    names: () => [...types.keys()],
  }
}

type JsonSchema = { description?: string; properties?: Record<string, JsonSchema> }

const toJobType = (schema: Record<string, unknown>): JobType => ({
  payload: toPayloadSchema(schema),
  describe: (path) => {
    let field: JsonSchema | undefined = schema
    for (const key of path) field = new Map(Object.entries(field?.properties ?? {})).get(String(key))
    return field?.description
  },
})

/** A schema that cannot be read here checks nothing here: the worker parses the payload again in any case. */
const toPayloadSchema = (schema: Record<string, unknown>): z.ZodType => {
  try {
    return z.fromJSONSchema(schema)
  } catch (error) {
    log('warn', 'unreadable payload schema', { error: String(error) })
    return z.looseObject({})
  }
}
