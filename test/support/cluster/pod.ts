import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createApiClient } from '../../../worker-runtime/cluster/api-client.ts'
import type { ClusterParts } from '../../../worker-runtime/cluster/command.ts'
import { parseConfig } from '../../../worker-runtime/config.ts'
import { asLogin, type TestDatabase } from '../database.ts'
import { createTestFolder } from '../folder.ts'
import { keepLog, type LogLine } from '../worker.ts'
import { type CertifiedServer, caOf, certificateOf } from './certificates.ts'
import { type KubernetesApi, startKubernetesApi } from './kubernetes-api.ts'

export type TestPod = {
  readonly api: KubernetesApi
  /** What a program of the cluster is made of, for one in this process, on ports of its own. */
  readonly parts: ClusterParts
  readonly log: LogLine[]
  readonly serviceAccountFolder: string
  readonly tlsFolder: string
  /** As kubelet replaces it, before it ends. */
  writeToken(token: string): Promise<void>
  /** As a mounted Secret changes. */
  writeCertificate(name: CertifiedServer): Promise<void>
  stop(): Promise<void>
}

/** A pod in the namespace `smartqueue` of a cluster, with what Kubernetes mounts into it. */
export const startPod = async (
  database: TestDatabase,
  env: Record<string, string> = {},
): Promise<TestPod> => {
  const folder = await createTestFolder()
  const serviceAccountFolder = join(folder, 'serviceaccount')
  const tlsFolder = join(folder, 'tls')
  await Promise.all([mkdir(serviceAccountFolder), mkdir(tlsFolder)])
  const api = await startKubernetesApi()
  const client = createApiClient({ server: api.url, serviceAccountFolder, timeoutMs: 2_000 })
  const { log, logger } = keepLog()
  const DATABASE_URL = env.DATABASE_URL ?? asLogin(database.url, 'functions')
  const config = {
    ...parseConfig({ ...env, DATABASE_URL, SMARTQUEUE_ADAPTER_TLS_DIR: tlsFolder }),
    DATABASE_URL,
    SMARTQUEUE_METRICS_PORT: 0,
    SMARTQUEUE_ADAPTER_PORT: 0,
  }
  const pod: TestPod = {
    api,
    parts: { config, api: client, namespace: 'smartqueue', logger },
    log,
    serviceAccountFolder,
    tlsFolder,
    writeToken: (token) => writeFile(join(serviceAccountFolder, 'token'), token),
    writeCertificate: async (name) => {
      const { cert, key } = certificateOf(name)
      await writeFile(join(tlsFolder, 'tls.crt'), cert)
      await writeFile(join(tlsFolder, 'tls.key'), key)
    },
    stop: async () => {
      await client.close()
      await api.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  await writeFile(join(serviceAccountFolder, 'ca.crt'), caOf('cluster-ca'))
  await writeFile(join(serviceAccountFolder, 'namespace'), 'smartqueue')
  await pod.writeToken(api.token)
  await pod.writeCertificate('server')
  Object.assign(api.authentication, {
    'requestheader-client-ca-file': caOf('front-proxy-ca'),
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  })
  return pod
}

/** What the leader stores every five seconds. With ten slots and a goal of a minute one worker does 480 s. */
export const storeSnapshot = (
  database: TestDatabase,
  { ageSeconds = 0, queued = 0, running = 0, arriving = 0, forecast = 0 } = {},
): Promise<unknown> =>
  database.sql(
    `
    insert into autoscale_snapshots (
      taken_at, queued_seconds, running_seconds, arriving_per_second, scheduled_seconds, forecast_p50_seconds,
      forecast_p90_seconds, workers, slots_per_worker, drain_goal_seconds, lead_seconds, min_workers, max_workers
    )
    values (now() - $1::float8 * interval '1 second', $2, $3, $4, 0, $5, $5, 1, 10, 60, 75, 1, 5)
    on conflict (only_row) do update
    set
      taken_at = excluded.taken_at,
      queued_seconds = excluded.queued_seconds,
      running_seconds = excluded.running_seconds,
      arriving_per_second = excluded.arriving_per_second,
      forecast_p50_seconds = excluded.forecast_p50_seconds`,
    [ageSeconds, queued, running, arriving, forecast],
  )
