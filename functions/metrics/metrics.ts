import { type AutoscaleRow, readAutoscale } from '../../db/queries/autoscale.ts'
import { type MetricsRow, readMetrics } from '../../db/queries/metrics.ts'
import { renderMetrics } from '../../db/rules/prometheus-text.ts'
import type { Database } from '../database.ts'
import { systemMetrics } from './system-metrics.ts'

export type Metrics = { read(): Promise<string> }

/** Anybody may ask, and the database is asked only this often. */
const FRESH_MS = 5_000

export const createMetrics = (
  { transaction }: Pick<Database, 'transaction'>,
  now: () => number = Date.now,
): Metrics => {
  let text = ''
  let readAt = Number.NEGATIVE_INFINITY
  return {
    read: async () => {
      if (now() - readAt < FRESH_MS && text !== '') return text
      // Before asking: who comes meanwhile gets the text before. After a failure there is none.
      readAt = now()
      const before = text
      const [[row], [autoscale]] = await transaction<[MetricsRow, AutoscaleRow]>([
        readMetrics(),
        readAutoscale(),
      ]).catch((error: unknown) => {
        if (text === before) text = ''
        throw error
      })
      if (!row) throw new Error('Metrics are one row')
      text = renderMetrics(systemMetrics(row, autoscale))
      return text
    },
  }
}
