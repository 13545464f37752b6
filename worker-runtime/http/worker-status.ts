import { createStatusServer, exposition, probe, type StatusServer } from './status-server.ts'
import type { WorkerCondition, WorkerMetrics } from './worker-metrics.ts'

/**
 * Probes and metrics of a worker. Whether it lives never depends on the database: to start all workers anew is no help if
 * that is away, and ends the jobs that run.
 */
export const createWorkerStatus = (options: {
  port: number
  ip?: string | undefined
  metrics: WorkerMetrics
  condition: () => WorkerCondition
  onError: (error: Error) => void
}): StatusServer => {
  const { condition, metrics } = options
  metrics.of(condition)
  return createStatusServer({
    port: options.port,
    ip: options.ip,
    onError: options.onError,
    routes: {
      '/healthz': probe(() => (condition().stuck ? 'claims stand still' : undefined)),
      '/readyz': probe(() => notReadyBecause(condition())),
      '/startupz': probe(() => (condition().started ? undefined : 'starting')),
      '/metrics': exposition(metrics.registry),
    },
  })
}

const notReadyBecause = ({ started, draining, databaseUp }: WorkerCondition): string | undefined => {
  if (draining) return 'draining'
  if (!started) return 'starting'
  return databaseUp ? undefined : 'the database does not answer'
}
