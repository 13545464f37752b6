import type { IncomingMessage } from 'node:http'
import { createAutoscaleLook } from '../cluster/autoscale-look.ts'
import { createCheckedRun } from '../cluster/checked-run.ts'
import { type ClusterParts, metricsPortOf } from '../cluster/command.ts'
import { createDatabase } from '../database.ts'
import { createFailureReports } from '../failure-reports.ts'
import { createStatusServer, exposition, probe } from '../http/status-server.ts'
import { type ApiAnswer, createExternalMetrics, failure } from './external-metrics.ts'
import { type FrontProxy, isAllowed } from './front-proxy.ts'
import { createAdapterMetrics } from './metrics.ts'
import { createTlsServer, type TlsContext, type TlsServer } from './tls-server.ts'
import { createTrust } from './trust.ts'

export type Adapter = {
  start(): Promise<void>
  /** Of the probes; and of the API, once it is known whom to trust. */
  ports(): { status: number; api: number | undefined }
  /** Looks at once whether a certificate has changed. */
  refresh(): Promise<unknown>
  /** Twice is safe. */
  stop(): Promise<void>
}

/** Serves the scaling signal as external metrics of Kubernetes. It keeps nothing: any number of replicas will do. */
export const createAdapter = ({ config, api, namespace, logger }: ClusterParts): Adapter => {
  const now = () => performance.now()
  const failed = createFailureReports({ logger, now })
  const database = createDatabase({
    url: config.DATABASE_URL,
    applicationName: 'smartqueue metrics adapter',
    maxConnections: 2,
    onError: failed('connection'),
  })
  const { run } = createCheckedRun(database.run)
  const look = createAutoscaleLook({ run, now, onError: failed('look at the snapshot') })
  const metrics = createAdapterMetrics(look)
  const externalMetrics = createExternalMetrics({ namespace, look })
  let frontProxy: FrontProxy | undefined
  let server: TlsServer | undefined

  const judge = async (request: IncomingMessage, commonName: string | undefined): Promise<ApiAnswer> => {
    if (!frontProxy || !isAllowed(frontProxy, commonName))
      return failure(
        'Forbidden',
        `${commonName ?? 'A client without a name'} is no API server of this cluster.`,
      )
    if (request.method !== 'GET') return failure('MethodNotAllowed', 'Metrics can only be read.')
    const path = `http://adapter${request.url ?? ''}`
    if (!URL.canParse(path)) return failure('BadRequest', 'The path is none.')
    return externalMetrics(new URL(path), request.headers.accept)
  }

  const answer = async (request: IncomingMessage, commonName: string | undefined): Promise<ApiAnswer> => {
    const found = await judge(request, commonName)
    metrics.answered(found.status)
    const { method, url } = request
    const asked = { method, url, by: commonName, on_behalf_of: request.headers['x-remote-user'] }
    logger.debug('request answered', { ...asked, status: found.status })
    return found
  }

  const apply = async (context: TlsContext, trusted: FrontProxy): Promise<void> => {
    if (server) server.change(context)
    else server = await listen(context)
    frontProxy = trusted
    logger.info('certificates read', { port: server.port(), allowed_names: trusted.allowedNames })
  }

  const listen = async (context: TlsContext): Promise<TlsServer> => {
    const created = createTlsServer({
      port: config.SMARTQUEUE_ADAPTER_PORT,
      context,
      answer,
      onRefused: (error) => logger.debug('connection refused', { error }),
      onError: failed('API server'),
    })
    await created.start()
    return created
  }

  const trust = createTrust({
    api,
    tlsFolder: config.SMARTQUEUE_ADAPTER_TLS_DIR,
    onChange: apply,
    onError: failed('reading of certificates'),
  })
  const status = createStatusServer({
    port: metricsPortOf(config),
    onError: failed('status server'),
    routes: {
      '/healthz': probe(() => undefined),
      // Not without the database: it answers that there is none, and Kubernetes has an API that is available.
      '/readyz': probe(() => (server ? undefined : 'the certificates have not been read yet')),
      '/metrics': exposition(metrics.registry),
    },
  })

  const stop = async (): Promise<void> => {
    await trust.stop()
    await Promise.all([server?.stop(), status.stop()])
    await database.close()
    logger.info('metrics adapter stopped')
  }
  let stopping: Promise<void> | undefined

  return {
    start: async () => {
      await status.start()
      trust.start()
      logger.info('metrics adapter started', { port: status.port(), namespace })
    },
    ports: () => ({ status: status.port(), api: server?.port() }),
    refresh: trust.look,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}
