import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Gauges whose names say that they are counters: `promtool check metrics` objects. There are others that tell the same. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** What Node tells of its process. */
export const createProcessRegistry = (): Registry => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  return registry
}

/** A gauge that is looked at when somebody scrapes. Without a value it is not there. */
export const addGauge = (
  registry: Registry,
  { name, help, read }: { name: string; help: string; read: () => Promise<number | undefined> },
): void => {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await read()
      if (value === undefined) this.remove()
      else this.set(value)
    },
  })
}
