import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { startRunner, withHome } from '../../support/local-runner.ts'
import { waitFor } from '../../support/wait-for.ts'
import { type ApiClient, signUp } from '../api-client.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { type KeptPromise, renderPhases, summarisePhases } from './accuracy.ts'
import { createRuntimes, type PlannedJob, planTenants, planWaves } from './workload.ts'

const DURATION_MS = 60_000
const QUICK_DURATION_MS = 6_000
const SLOTS = 4
const SEED = 5

/** Each of the seeds with a system of its own. */
const TENANT_SEEDS = [11, 12, 13, 14, 15]

/**
 * How well promised starts and ends are kept. A mixed workload is submitted to a system that knows nothing of it, and that it
 * fills and lets run dry; the jobs call this process, which answers as late as their name and size say. Promises are those of
 * the answers to the submissions. One tenant comes in waves; then three compete for the slots, each with a third of them.
 */
export const benchEta = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const durationMs = quick ? QUICK_DURATION_MS : DURATION_MS
  const waves = summarisePhases(
    await play({ say, seed: SEED, planned: planWaves({ durationMs, slots: SLOTS, seed: SEED }) }),
  )
  const kept: KeptPromise[] = []
  for (const seed of quick ? TENANT_SEEDS.slice(0, 1) : TENANT_SEEDS) {
    kept.push(...(await play({ say, seed, planned: planTenants({ durationMs, slots: SLOTS, seed }) })))
  }
  const tenants = summarisePhases(kept.map((one) => ({ ...one, name: one.tenant })))
  return {
    data: { ...waves, tenants },
    text: `One tenant, in waves\n${renderPhases(waves)}\n\nThree tenants\n${renderPhases(tenants)}`,
  }
}

const play = async (scenario: {
  say: BenchOptions['say']
  seed: number
  planned: readonly PlannedJob[]
}): Promise<KeptPromise[]> => {
  const { say, seed, planned } = scenario
  const kept: KeptPromise[] = []
  await withHome(async (home) => {
    say(`Starting a system of its own: Postgres with fsync on, wrangler dev, one worker of ${SLOTS} slots…`)
    const runner = await startRunner(home, { SMARTQUEUE_WORKER_SLOTS: String(SLOTS) })
    const target = await startTarget(seed)
    try {
      const tenants = [...new Set(planned.map(({ tenant }) => tenant))]
      const apis = new Map<string, ApiClient>()
      for (const tenant of tenants) apis.set(tenant, await signUp(runner.url, tenant))
      say(`${planned.length} jobs of five kinds, of ${tenants.join(', ')}…`)
      const promised = await submitAll(apis, target.url, planned)
      say('Waiting for the last of them…')
      for (const [tenant, api] of apis) {
        kept.push(
          ...(await readEnds(
            api,
            promised.filter((job) => job.planned.tenant === tenant),
          )),
        )
      }
    } finally {
      target.stop()
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  return kept
}

/** Answers as late as the job should take. */
const startTarget = async (seed: number) => {
  const runtimeOf = createRuntimes(seed + 1)
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bench')
    const ms = runtimeOf(pathname.slice(1), Number(searchParams.get('bytes')))
    request.resume()
    setTimeout(() => response.end(), ms)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

type SubmittedJob = {
  id: string
  eta: { start_at: string; finish_p50_at: string; finish_p90_at: string } | null
  prediction: { source: string }
}
type Promised = SubmittedJob & { planned: PlannedJob }

/** Each at its time, whether those before have been answered or not. */
const submitAll = async (
  apis: ReadonlyMap<string, ApiClient>,
  url: string,
  planned: readonly PlannedJob[],
): Promise<Promised[]> => {
  const beganAt = performance.now()
  const answers: Promise<Promised>[] = []
  for (const job of planned) {
    await delay(Math.max(0, beganAt + job.atMs - performance.now()))
    const api = apis.get(job.tenant) as ApiClient
    answers.push(
      api.post<SubmittedJob>('/jobs', requestOf(job, url)).then((answer) => ({ ...answer, planned: job })),
    )
  }
  return Promise.all(answers)
}

const requestOf = ({ name, priority, timeoutSeconds, bytes }: PlannedJob, url: string) => ({
  name,
  type: 'http',
  priority,
  ...(timeoutSeconds && { timeout_seconds: timeoutSeconds }),
  payload: {
    url: `${url}/${name}?bytes=${bytes}`,
    method: 'POST',
    ...(bytes > 0 && { body: 'x'.repeat(bytes) }),
  },
})

type EndedJob = { id: string; status: string; created_at: string; started_at: string; finished_at: string }

const readEnds = async (api: ApiClient, promised: readonly Promised[]): Promise<KeptPromise[]> => {
  const ended = await waitFor(
    'all jobs to end',
    async () => {
      const jobs = await listJobs(api)
      return jobs.every(({ status }) => status === 'completed') && new Map(jobs.map((job) => [job.id, job]))
    },
    120_000,
  )
  return promised.flatMap(({ id, eta, planned, prediction }) => {
    const job = ended.get(id)
    if (!job || !eta) return []
    const since = (time: string): number => (Date.parse(time) - Date.parse(job.created_at)) / 1000
    return {
      name: planned.name,
      tenant: planned.tenant,
      source: prediction.source,
      waitS: since(job.started_at),
      promisedWaitS: since(eta.start_at),
      inTime: Date.parse(job.finished_at) <= Date.parse(eta.finish_p90_at),
    }
  })
}

const listJobs = async (api: ApiClient): Promise<EndedJob[]> => {
  const jobs: EndedJob[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { items: EndedJob[]; next_cursor: string | null } = await api.get(
      `/jobs?limit=200${cursor && `&cursor=${cursor}`}`,
    )
    jobs.push(...page.items)
    cursor = page.next_cursor
  }
  return jobs
}
