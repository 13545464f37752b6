import { z } from '@hono/zod-openapi'
import type { GraphRow } from '../../db/queries/job-graph.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { round } from './job-view.ts'

/** More than fits on a screen. */
export const MAX_NODES = 200

const node = z.object({
  id: z.uuid(),
  name: z.string(),
  type: z.string(),
  status: z.enum(JOB_STATES),
  attempts: z.int(),
  prediction: z.object({ p50_ms: z.number(), p90_ms: z.number() }),
})

export const graph = z
  .object({
    nodes: z.array(node).openapi({ description: 'The job itself first, then those nearest to it.' }),
    edges: z.array(
      z.object({
        from: z.uuid().openapi({ description: 'The job that is waited for.' }),
        to: z.uuid().openapi({ description: 'The job that waits for it.' }),
      }),
    ),
    truncated: z.boolean().openapi({ description: 'There are more jobs than are shown.' }),
  })
  .openapi('JobGraph')

/** Of one row more than are shown: it says that there are more. */
export const viewGraph = (rows: GraphRow[]): z.output<typeof graph> => {
  const shown = rows.slice(0, MAX_NODES)
  const ids = new Set(shown.map(({ id }) => id))
  return {
    nodes: shown.map(viewNode),
    edges: shown.flatMap(({ id, parents }) =>
      parents.filter((parent) => ids.has(parent)).map((parent) => ({ from: parent, to: id })),
    ),
    truncated: rows.length > MAX_NODES,
  }
}

const viewNode = (row: GraphRow): z.output<typeof node> => ({
  id: row.id,
  name: row.name,
  type: row.type,
  status: row.status,
  attempts: row.attempts,
  prediction: { p50_ms: round(row.predicted_ms, 1), p90_ms: round(row.predicted_p90_ms, 1) },
})
