import { createAutoscaleLook } from '../cluster/autoscale-look.ts'
import { createCheckedRun } from '../cluster/checked-run.ts'
import { type ClusterParts, metricsPortOf } from '../cluster/command.ts'
import { createDatabase } from '../database.ts'
import { createFailureReports } from '../failure-reports.ts'
import { createStatusServer, exposition, probe } from '../http/status-server.ts'
import { autoscaleRoute } from './autoscale-route.ts'
import { createDeletionCosts } from './deletion-costs.ts'
import { createControllerMetrics } from './metrics.ts'
import { createPods } from './pods.ts'

export type Controller = {
  start(): Promise<void>
  port(): number
  /** Twice is safe. */
  stop(): Promise<void>
}

/** Serves the scaling signal within the cluster, and keeps the deletion costs of the workers' pods. */
export const createController = ({ config, api, namespace, logger }: ClusterParts): Controller => {
  const now = () => performance.now()
  const failed = createFailureReports({ logger, now })
  const database = createDatabase({
    url: config.DATABASE_URL,
    applicationName: 'smartqueue controller',
    maxConnections: 2,
    onError: failed('connection'),
  })
  const checked = createCheckedRun(database.run)
  const look = createAutoscaleLook({ run: checked.run, now, onError: failed('look at the snapshot') })
  const metrics = createControllerMetrics(look)
  const pods = createPods({ api, namespace, selector: config.SMARTQUEUE_POD_SELECTOR })
  const costs = createDeletionCosts({
    run: checked.run,
    pods,
    logger,
    now,
    onResult: metrics.costWritten,
    onError: failed('keeping of deletion costs'),
  })
  const server = createStatusServer({
    port: metricsPortOf(config),
    onError: failed('status server'),
    routes: {
      '/healthz': probe(() => undefined),
      // Once is enough: without the database /autoscale says so itself, and that is more than a refused connection says.
      '/readyz': probe(() => (checked.isChecked() ? undefined : 'the database has not answered yet')),
      '/metrics': exposition(metrics.registry),
      '/autoscale': autoscaleRoute(look),
    },
  })

  const stop = async (): Promise<void> => {
    await costs.stop()
    await server.stop()
    await database.close()
    logger.info('controller stopped')
  }
  let stopping: Promise<void> | undefined

  return {
    start: async () => {
      await server.start()
      costs.start()
      logger.info('controller started', { port: server.port(), namespace })
    },
    port: server.port,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}
