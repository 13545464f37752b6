import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { startRunner, withHome } from '../support/local-runner.ts'
import { type ApiClient, signUp } from './api-client.ts'
import { type BenchOptions, type BenchReport, percentile } from './report.ts'

const ROWS = 10_000
const QUICK_ROWS = 500
const BATCH = 1_000
/** Each is three events: ready, running, completed. */
const JOBS_A_SECOND = 67
const MEASURED_MS = 10_000
const QUICK_MS = 2_000
const SCROLL_PX_A_SECOND = 3_000

type Frames = { frames: number[]; longTasks: number[] }

/**
 * How responsive the list of jobs stays in a real browser, with 10,000 jobs in it and 200 events a second of jobs that really
 * run: the time between two frames, and tasks that kept the page from answering for more than 50 ms.
 */
export const benchDashboard = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const rows: Row[] = []
  await withHome(async (home) => {
    say('Starting a system of its own, and Chromium…')
    const runner = await startRunner(home)
    const browser = await launchBrowser()
    try {
      const api = await signUp(runner.url)
      const wanted = quick ? QUICK_ROWS : ROWS
      say(`${wanted} jobs that wait…`)
      await submitWaiting(api, runner.url, wanted)
      const page = await browser.newPage({ locale: 'en-GB', viewport: { width: 1360, height: 900 } })
      await signIn(page, runner.url, api)
      const loadedMs = await loadAllRows(page, wanted)
      say(`All of them in the list after ${(loadedMs / 1000).toFixed(1)} s.`)
      const ms = quick ? QUICK_MS : MEASURED_MS
      rows.push(rowOf('without events, standing', await watchFrames(page, ms, 0)))
      const stop = submitSteadily(api, runner.url)
      await delay(2_000)
      rows.push(rowOf('200 events/s, standing', await watchFrames(page, ms, 0)))
      rows.push(
        rowOf(
          `200 events/s, scrolling ${SCROLL_PX_A_SECOND} px/s`,
          await watchFrames(page, ms, SCROLL_PX_A_SECOND),
        ),
      )
      await page.evaluate('scrollTo(0, 0)')
      rows.push(rowOf('200 events/s, at the top', await watchFrames(page, ms, 0)))
      await stop()
    } finally {
      await browser.close()
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  return { data: { rows }, text: rows.map(line).join('\n') }
}

const submitWaiting = async (api: ApiClient, url: string, count: number): Promise<void> => {
  const job = {
    type: 'http',
    payload: { url: `${url}/healthz` },
    run_at: '2099-01-01T00:00:00Z',
    tags: ['bench'],
  }
  for (let done = 0; done < count; done += BATCH) {
    const jobs = Array.from({ length: Math.min(BATCH, count - done) }, (_, n) => ({
      ...job,
      name: `waiting-${n % 20}`,
    }))
    await api.post('/jobs/batch', { jobs })
  }
}

const signIn = async (page: Page, url: string, { account }: ApiClient): Promise<void> => {
  await page.goto(`${url}/#/sign-in`)
  await page.getByLabel('Username').fill(account.username)
  await page.getByLabel('Password').fill(account.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.goto(`${url}/#/jobs`)
  await page
    .getByRole('link', { name: /waiting/ })
    .first()
    .waitFor()
}

const ROW_PX = 41

/** Scrolls to the end again and again, as somebody does who looks for the first job. */
const loadAllRows = async (page: Page, rows: number): Promise<number> => {
  const beganAt = performance.now()
  while ((await page.evaluate<number>('document.documentElement.scrollHeight')) < rows * ROW_PX) {
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    await page.evaluate('new Promise((done) => requestAnimationFrame(done))')
  }
  return performance.now() - beganAt
}

const watchFrames = (page: Page, ms: number, pxASecond: number): Promise<Frames> =>
  page.evaluate(`new Promise((done) => {
    const [frames, longTasks] = [[], []]
    const observer = new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })
    const began = performance.now()
    let last = began
    let direction = scrollY > 0 ? -1 : 1
    const next = (now) => {
      frames.push(now - last)
      if (${pxASecond} > 0) {
        const before = scrollY
        scrollBy(0, direction * ${pxASecond} * (now - last) / 1000)
        if (scrollY === before) direction = -direction
      }
      last = now
      if (now - began < ${ms}) requestAnimationFrame(next)
      else {
        observer.disconnect()
        done({ frames: frames.slice(1), longTasks })
      }
    }
    requestAnimationFrame(next)
  })`)

/** Jobs that run on the worker, at an even rate, until it is stopped. */
const submitSteadily = (api: ApiClient, url: string): (() => Promise<void>) => {
  let going = true
  const submit = async (): Promise<void> => {
    const beganAt = performance.now()
    for (let sent = 0; going; ) {
      const due = Math.floor(((performance.now() - beganAt) / 1000) * JOBS_A_SECOND) - sent
      if (due > 0) {
        const jobs = Array.from({ length: due }, () => ({
          name: 'live',
          type: 'http',
          payload: { url: `${url}/healthz` },
        }))
        await api.post('/jobs/batch', { jobs })
        sent += due
      }
      await delay(100)
    }
  }
  const submitting = submit()
  return async () => {
    going = false
    await submitting
  }
}

const rowOf = (situation: string, { frames, longTasks }: Frames) => ({
  situation,
  frames: frames.length,
  p50_ms: Math.round(percentile(frames, 0.5)),
  p95_ms: Math.round(percentile(frames, 0.95)),
  p99_ms: Math.round(percentile(frames, 0.99)),
  max_ms: Math.round(percentile(frames, 1)),
  long_tasks: longTasks.length,
  longest_task_ms: Math.round(Math.max(0, ...longTasks)),
})

type Row = ReturnType<typeof rowOf>

const line = (row: Row): string =>
  `${row.situation.padEnd(38)} frame p50 ${row.p50_ms} ms, p95 ${row.p95_ms}, p99 ${row.p99_ms}, max ${row.max_ms} of ${row.frames}; ` +
  `${row.long_tasks} tasks above 50 ms, the longest ${row.longest_task_ms}`
