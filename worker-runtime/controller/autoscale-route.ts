import { viewAutoscale } from '../../db/queries/autoscale.ts'
import type { LookAtAutoscale } from '../cluster/autoscale-look.ts'
import type { StatusRoute } from '../http/status-server.ts'

/** The answer of the functions' `/autoscale`, for autoscalers in the cluster. Whoever gets a 503 leaves all as it is. */
export const autoscaleRoute =
  (look: LookAtAutoscale): StatusRoute =>
  async () => {
    const found = await look()
    if (found.kind === 'fresh')
      return { status: 200, type: 'application/json', body: JSON.stringify(viewAutoscale(found.row)) }
    const problem = found.kind === 'away' ? DATABASE_UNAVAILABLE : AUTOSCALE_UNKNOWN
    const body = JSON.stringify({ ...problem, status: 503, detail: found.because })
    return { status: 503, type: 'application/problem+json', body }
  }

/** As the functions have them. */
const DATABASE_UNAVAILABLE = {
  type: '/docs#problem-database-unavailable',
  title: 'The database is unavailable',
}
const AUTOSCALE_UNKNOWN = { type: '/docs#problem-autoscale-unknown', title: 'There is nothing to scale by' }
