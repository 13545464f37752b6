import { setTimeout as delay } from 'node:timers/promises'
import { UsageError } from '../command.ts'
import { DEMO_TAG } from './job-requests.ts'
import type { Tenant } from './tenants.ts'

const PATIENCE_MS = 20_000
const LOOK_MS = 50

type ProbeJob = { id: string; status: string; error: { code: string; message: string } | null }

/** One job that calls the demo's server tells whether a worker runs, and whether it may reach that. */
export const requireReach = async ({ api }: Tenant, targetUrl: string): Promise<void> => {
  const job = await api.post<ProbeJob>('/jobs', {
    name: 'check-connection',
    type: 'http',
    priority: 'critical',
    payload: { url: `${targetUrl}/` },
    retry: { max_attempts: 1 },
    tags: [DEMO_TAG],
  })
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const { status, error } = await api.get<ProbeJob>(`/jobs/${job.id}`)
    if (status === 'completed') return
    if (status === 'failed') throw new UsageError(explain(targetUrl, error))
    if (performance.now() > end) throw new UsageError('No worker takes jobs: is `npm run dev` still well?')
    await delay(LOOK_MS)
  }
}

const explain = (targetUrl: string, error: ProbeJob['error']): string => {
  const { host, port } = new URL(targetUrl)
  return error?.code === 'address_refused'
    ? `The workers may not call the demo's server at ${host}. Start \`npm run dev\` without SMARTQUEUE_HTTP_ALLOW and run the demo with its PORT and SMARTQUEUE_HOME; or add ${host} to SMARTQUEUE_HTTP_ALLOW, restart it, and run \`npm run demo -- --port ${port}\`.`
    : `The workers cannot call the demo's server at ${targetUrl}: ${error?.message}`
}
