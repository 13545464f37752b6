import { Counter, type Registry } from 'prom-client'
import type { LookAtAutoscale } from '../cluster/autoscale-look.ts'
import { addGauge, createProcessRegistry } from '../http/process-metrics.ts'
import type { CostResult } from './deletion-costs.ts'

export type ControllerMetrics = { readonly registry: Registry; costWritten(result: CostResult): void }

export const createControllerMetrics = (look: LookAtAutoscale): ControllerMetrics => {
  const registry = createProcessRegistry()
  addGauge(registry, {
    name: 'smartqueue_controller_database_up',
    help: 'Whether the database answers the controller.',
    read: async () => Number((await look()).kind !== 'away'),
  })
  addGauge(registry, {
    name: 'smartqueue_controller_snapshot_age_seconds',
    help: 'How old the newest autoscaling snapshot is. Not there without a snapshot, or without the database.',
    read: async () => {
      const found = await look()
      if (found.kind === 'fresh') return found.row.age_seconds
      return found.kind === 'unusable' ? found.ageSeconds : undefined
    },
  })
  const written = new Counter({
    name: 'smartqueue_controller_deletion_costs_total',
    help: 'Changes of the deletion cost of a pod, by what became of them.',
    labelNames: ['result'],
    registers: [registry],
  })
  for (const result of ['patched', 'failed'] as const) written.inc({ result }, 0)
  return { registry, costWritten: (result) => written.inc({ result }) }
}
