import { type AutoscaleRow, readAutoscale } from '../../db/queries/autoscale.ts'
import { type MetricsRow, readMetrics } from '../../db/queries/metrics.ts'
import type { Database } from '../database.ts'
import { renderMetrics } from './prometheus-text.ts'
import { systemMetrics } from './system-metrics.ts'

export type Metrics = { read(): Promise<string> }

/** Anybody may ask, and the database is asked only this often. */
const FRESH_MS = 5_000
/**
 * What is older is told nobody, also not while the database is asked: another isolate may have told newer counts, and counters
 * that go back look as if all of it had been counted anew.
 */
const LONGEST_MS = 10_000

export const createMetrics = (
  { transaction }: Pick<Database, 'transaction'>,
  now: () => number = Date.now,
): Metrics => {
  let known: { text: string; readAt: number } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  return {
    read: async () => {
      const readAt = now()
      if (known && readAt - askedAt < FRESH_MS && readAt - known.readAt < LONGEST_MS) return known.text
      // Before asking: who comes meanwhile gets the text before. After a failure there is none.
      askedAt = readAt
      const before = known
      const [[row], [autoscale]] = await transaction<[MetricsRow, AutoscaleRow]>([
        readMetrics(),
        readAutoscale(),
      ]).catch((error: unknown) => {
        if (known === before) known = undefined
        throw error
      })
      if (!row) throw new Error('Metrics are one row')
      const text = renderMetrics(systemMetrics(row, autoscale))
      known = { text, readAt }
      return text
    },
  }
}
