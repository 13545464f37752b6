import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startRunner, withHome } from '../support/local-runner.ts'
import { signUp } from './api-client.ts'
import { type BenchOptions, type BenchReport, percentile } from './report.ts'

const SUBMISSIONS = 300
const QUICK_SUBMISSIONS = 30
const WARM_UP = 20

/**
 * How long a job waits on an idle system. The jobs are http jobs that call this process, so that the start is
 * seen from outside: from just before the submission is sent until the job's own request arrives. That is more
 * than the wait in the queue: it has the whole HTTP API, the commit, the wake-up, the claim and the connection in it.
 */
export const benchPickup = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const submissions = quick ? QUICK_SUBMISSIONS : SUBMISSIONS
  const samples: number[] = []
  const answered: number[] = []
  await withHome(async (home) => {
    say('Starting a system of its own: Postgres with fsync on, wrangler dev, one worker…')
    const runner = await startRunner(home)
    const target = await listenForJobs()
    const api = await signUp(runner.url)
    say(`${WARM_UP} submissions to warm up, then ${submissions}, one at a time…`)
    for (let n = -WARM_UP; n < submissions; n++) {
      const arrival = target.nextArrival()
      const sentAt = performance.now()
      await api.post('/jobs', { name: 'pickup', type: 'http', payload: { url: target.url } })
      const answeredAt = performance.now()
      const startedAt = await arrival
      if (n < 0) continue
      samples.push(startedAt - sentAt)
      answered.push(answeredAt - sentAt)
    }
    target.stop()
    process.kill(runner.pid, 'SIGTERM')
    await runner.exited
  })
  const data = { submit_to_start: summarise(samples), submit_to_answer: summarise(answered) }
  return {
    data,
    text: `${line('submit → start', data.submit_to_start)}\n${line('submit → 201', data.submit_to_answer)}`,
  }
}

const summarise = (samples: number[]) => ({
  samples: samples.length,
  p50_ms: round(percentile(samples, 0.5)),
  p99_ms: round(percentile(samples, 0.99)),
  max_ms: round(percentile(samples, 1)),
})

const line = (what: string, { samples, p50_ms, p99_ms, max_ms }: ReturnType<typeof summarise>): string =>
  `${what.padEnd(14)}  p50 ${p50_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms of ${samples}`

const round = (value: number): number => Math.round(value * 10) / 10

const listenForJobs = async () => {
  let arrived = (_atMs: number): void => {}
  const server = createServer((_request: IncomingMessage, response: ServerResponse) => {
    arrived(performance.now())
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    nextArrival: () =>
      new Promise<number>((resolve) => {
        arrived = resolve
      }),
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
