import { Counter, type Registry } from 'prom-client'
import type { LookAtAutoscale } from '../cluster/autoscale-look.ts'
import { addGauge, createProcessRegistry } from '../http/process-metrics.ts'

export type AdapterMetrics = { readonly registry: Registry; answered(status: number): void }

export const createAdapterMetrics = (look: LookAtAutoscale): AdapterMetrics => {
  const registry = createProcessRegistry()
  addGauge(registry, {
    name: 'smartqueue_adapter_database_up',
    help: 'Whether the database answers the metrics adapter.',
    read: async () => Number((await look()).kind !== 'away'),
  })
  const requests = new Counter({
    name: 'smartqueue_adapter_requests_total',
    help: 'Requests of the cluster to the metrics adapter, by the status of the answer.',
    labelNames: ['code'],
    registers: [registry],
  })
  requests.inc({ code: 200 }, 0)
  return { registry, answered: (status) => requests.inc({ code: status }) }
}
