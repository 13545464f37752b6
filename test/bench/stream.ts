import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { startRunner, withHome } from '../support/local-runner.ts'
import { openStream } from '../support/stream.ts'
import { waitFor } from '../support/wait-for.ts'
import { type ApiClient, signUp } from './api-client.ts'
import { type BenchOptions, type BenchReport, percentile } from './report.ts'

const JOBS = 300
const QUICK_JOBS = 20
/** Five a second, and not in step with anything. */
const MEAN_GAP_MS = 200

/**
 * How long after its commit an event is seen: by a page in Chromium, and by a client in this process. The jobs run on a real
 * worker, so that each is three events: `ready` is committed by the functions, who tell the stream; `running` and `completed`
 * by the worker, who does not. All clocks are this machine's. The time of an event is that of its transaction's beginning,
 * and the commit comes after it: what is measured is a little more than what is asked.
 */
export const benchStream = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const jobs = quick ? QUICK_JOBS : JOBS
  let seen: Record<string, Arrival[]> = {}
  await withHome(async (home) => {
    say('Starting a system of its own: Postgres with fsync on, wrangler dev, one worker, and Chromium…')
    const runner = await startRunner(home)
    const browser = await launchBrowser()
    try {
      const api = await signUp(runner.url)
      const page = await browser.newPage()
      await followInPage(page, runner.url, api)
      const client = await followHere(runner.url, api)
      say(`${jobs} jobs, five a second…`)
      await submitAll(api, runner.url, jobs)
      const all = jobs * 3
      await waitFor(
        'all events',
        async () => client.length >= all && (await inPage(page)).length >= all,
        60_000,
      )
      seen = { browser: await inPage(page), node: client }
    } finally {
      await browser.close()
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  const rows = Object.entries(seen).flatMap(([who, arrivals]) =>
    ['all', 'job.ready', 'job.running', 'job.completed'].map((type) => ({
      who,
      type,
      ...summarise(arrivals.filter((arrival) => type === 'all' || arrival.type === type)),
    })),
  )
  return { data: { commit_to_client: rows }, text: rows.map(line).join('\n') }
}

type Arrival = { type: string; ms: number }

/** As a page does it: a ticket, and a WebSocket that shows it. */
const followInPage = async (page: Page, url: string, api: ApiClient): Promise<void> => {
  const { ticket } = await api.post<{ ticket: string }>('/jobs/stream/tickets', {})
  await page.goto(`${url}/docs`)
  await page.evaluate(
    `new Promise((resolve, reject) => {
      globalThis.arrivals = []
      const socket = new WebSocket(${JSON.stringify(`${url.replace('http', 'ws')}/jobs/stream`)}, ['smartqueue.v1', ${JSON.stringify(`ticket.${ticket}`)}])
      socket.onmessage = ({ data }) => {
        const now = Date.now()
        const frame = JSON.parse(data)
        if (frame.type === 'hello') resolve()
        if (frame.type !== 'events') return
        for (const { type, at } of frame.events) globalThis.arrivals.push({ type, ms: now - Date.parse(at) })
        socket.send(JSON.stringify({ type: 'credit', n: frame.events.length }))
      }
      socket.onclose = ({ code, reason }) => reject(new Error(code + ' ' + reason))
    })`,
  )
}

const inPage = (page: Page): Promise<Arrival[]> => page.evaluate('globalThis.arrivals')

const followHere = async (url: string, api: ApiClient): Promise<Arrival[]> => {
  const { ticket } = await api.post<{ ticket: string }>('/jobs/stream/tickets', {})
  const arrivals: Arrival[] = []
  const client = await openStream(
    { url },
    {
      ticket,
      onEvent: ({ type, at }) => arrivals.push({ type, ms: Date.now() - Date.parse(at) }),
    },
  )
  await client.frame('hello')
  return arrivals
}

const submitAll = async (api: ApiClient, url: string, jobs: number): Promise<void> => {
  const answers: Promise<unknown>[] = []
  for (let n = 0; n < jobs; n++) {
    await delay(MEAN_GAP_MS * (0.5 + Math.random()))
    const payload = { url: `${url}/healthz` }
    answers.push(api.post('/jobs', { name: 'stream', type: 'http', payload }))
  }
  await Promise.all(answers)
}

const summarise = (arrivals: readonly Arrival[]) => {
  const samples = arrivals.map(({ ms }) => ms)
  const at = (share: number): number => Math.round(percentile(samples, share))
  return { events: samples.length, p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), max_ms: at(1) }
}

type Row = ReturnType<typeof summarise> & { who: string; type: string }

const line = ({ who, type, events, p50_ms, p95_ms, p99_ms, max_ms }: Row): string =>
  `commit → ${who.padEnd(8)} ${type.padEnd(13)}  p50 ${p50_ms} ms, p95 ${p95_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms of ${events}`
