import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { startRunner, withHome } from '../../support/local-runner.ts'
import { waitFor } from '../../support/wait-for.ts'
import { type ApiClient, signUp } from '../api-client.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { type KeptPromise, renderPhases, summarisePhases } from './accuracy.ts'
import { createRuntimes, type PlannedJob, planJobs } from './workload.ts'

const DURATION_MS = 60_000
const QUICK_DURATION_MS = 6_000
const SLOTS = 4
const SEED = 5

/**
 * How well promised starts and ends are kept. A mixed workload is submitted to a system that knows nothing of it, in waves
 * that fill the queue and let it run dry; the jobs call this process, which answers as late as their name and size say.
 * Promises are those of the answers to the submissions.
 */
export const benchEta = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const planned = planJobs({ durationMs: quick ? QUICK_DURATION_MS : DURATION_MS, slots: SLOTS, seed: SEED })
  let kept: KeptPromise[] = []
  await withHome(async (home) => {
    say(`Starting a system of its own: Postgres with fsync on, wrangler dev, one worker of ${SLOTS} slots…`)
    const runner = await startRunner(home, { SMARTQUEUE_WORKER_SLOTS: String(SLOTS) })
    const target = await startTarget()
    try {
      const api = await signUp(runner.url)
      say(`${planned.length} jobs of five kinds, in waves…`)
      const promised = await submitAll(api, target.url, planned)
      say('Waiting for the last of them…')
      kept = await readEnds(api, promised)
    } finally {
      target.stop()
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  const phases = summarisePhases(kept)
  return { data: phases, text: renderPhases(phases) }
}

/** Answers as late as the job should take. */
const startTarget = async () => {
  const runtimeOf = createRuntimes(SEED + 1)
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
  api: ApiClient,
  url: string,
  planned: readonly PlannedJob[],
): Promise<Promised[]> => {
  const beganAt = performance.now()
  const answers: Promise<Promised>[] = []
  for (const job of planned) {
    await delay(Math.max(0, beganAt + job.atMs - performance.now()))
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
