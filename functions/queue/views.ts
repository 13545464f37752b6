import type { z } from '@hono/zod-openapi'
import { isoTime } from '../../db/iso-time.ts'
import type { OrgQueueRow, QueueSums } from '../../db/queries/queue-facts.ts'
import { seconds } from '../jobs/durations.ts'
import { round } from '../jobs/job-view.ts'
import type { orgQueue, share } from './schemas.ts'

export const viewShare = (sums: QueueSums): z.output<typeof share> =>
  viewNumbers({ ...sums, waiting_jobs: sum(sums.lane_jobs), waiting_ms: sum(sums.lane_ms) })

export const viewOrgQueue = ({ id, name, ...row }: OrgQueueRow): z.output<typeof orgQueue> => ({
  id,
  name,
  ...viewNumbers(row),
})

const viewNumbers = (row: Omit<OrgQueueRow, 'id' | 'name'>): z.output<typeof share> => ({
  weight: round(row.weight, 4),
  share: round(row.share, 4),
  used: round(row.used, 4),
  waiting_jobs: row.waiting_jobs,
  waiting_seconds: seconds(row.waiting_ms),
  running_jobs: row.running_jobs,
  short_since: row.short_since && isoTime(row.short_since),
})

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
