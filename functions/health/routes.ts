import { createRoute, z } from '@hono/zod-openapi'
import { probeDisk } from '../../db/queries/notifications.ts'
import { SCHEMA_VERSION, schemaVersion, UNDEFINED_TABLE } from '../../db/queries/schema-version.ts'
import type { Database } from '../database.ts'
import { DatabaseUnavailable } from '../database-errors.ts'
import { jsonContent, problemResponses } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { RowSecurityBroken } from '../row-level-security.ts'
import type { Services } from '../services.ts'

export const healthRoutes = () =>
  createRouter()
    .openapi(healthzRoute, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readyzRoute, async (c) => {
      await requireReady(c.get('services'))
      return c.json({ status: 'ok' as const, schema_version: SCHEMA_VERSION }, 200)
    })

const healthzRoute = createRoute({
  method: 'get',
  path: '/healthz',
  tags: ['operations'],
  summary: 'The functions run',
  responses: { 200: jsonContent(z.object({ status: z.literal('ok') }), 'Alive') },
})

const readyzRoute = createRoute({
  method: 'get',
  path: '/readyz',
  tags: ['operations'],
  summary:
    'Check that the database responds, its schema is current, its disk has space, and the role cannot see across organisations',
  responses: {
    200: jsonContent(z.object({ status: z.literal('ok'), schema_version: z.int() }), 'Ready'),
    ...problemResponses('not-ready'),
  },
})

/** A probe does not wait as long as a request may. */
const READY_MS = 2_000

const timeUp = (): Promise<never> =>
  new Promise((_, reject) => {
    const late = new DatabaseUnavailable('The database does not answer.', { rolledBack: false })
    setTimeout(() => reject(late), READY_MS)
  })

const requireReady = async ({ database }: Services): Promise<void> => {
  try {
    const look = lookAt(database)
    look.catch(() => {})
    await Promise.race([look, timeUp()])
  } catch (error) {
    if (error instanceof DatabaseUnavailable || error instanceof RowSecurityBroken) {
      throw new ProblemError('not-ready', error.message)
    }
    throw error
  }
}

const lookAt = async (database: Database): Promise<void> => {
  await requireCurrentSchema(database)
  // A provider's limit, such as Neon's on project size, affects only writes to tables.
  if (database.wasDiskFull()) throw new ProblemError('not-ready', "The database's disk is full.")
  await database.transaction(probeDisk())
}

const requireCurrentSchema = async (database: Database): Promise<void> => {
  const rows = await database.run(schemaVersion()).catch((error: { code?: string }) => {
    if (error.code === UNDEFINED_TABLE) return []
    throw error
  })
  const version = rows[0]?.version ?? 0
  if (version >= SCHEMA_VERSION) return
  const detail = `The schema is at version ${version}, ${SCHEMA_VERSION} is needed. Run npm run migrate.`
  throw new ProblemError('not-ready', detail)
}
