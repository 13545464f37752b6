import type { Config } from '../config.ts'
import { createFailureReports } from '../failure-reports.ts'
import type { Logger } from '../logger.ts'
import type { JobTracing } from './job-tracing.ts'

/** Loads OpenTelemetry if spans are to be exported. Without that, nothing of it is in the process. */
export const startTracing = async (config: Config, logger: Logger): Promise<JobTracing | undefined> => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config
  if (!endpoint) return undefined
  const failed = createFailureReports({ logger, now: () => performance.now() })
  const { createTracing } = await import('./provider.ts')
  return createTracing({ config, endpoint, onError: failed('span export') })
}
