import { createRandom } from '../../functions/prediction/lstm/random.ts'
import type { Api, Page } from './api.ts'
import { addColleague, leaveInvitation, startSchedule } from './company-life.ts'
import { DEMO_TAG } from './job-requests.ts'
import { TENANTS } from './kinds.ts'
import { createObserver, isFinished } from './observer.ts'
import { planDemo } from './plan.ts'
import type { Progress } from './progress.ts'
import { requireReach } from './require-reach.ts'
import { createSubmitter } from './submitter.ts'
import { type DeadLetters, type Summary, summarise } from './summary.ts'
import { startTargetServer } from './target-server.ts'
import { openTenant, type Say, type Tenant } from './tenants.ts'
import { createWatch } from './watch.ts'
import { openWebhookSource, type WebhookSource } from './webhook-source.ts'

export type DemoOptions = {
  url: string
  targetPort: number
  seconds: number
  rate: number
  seed: number
  signal: AbortSignal
  progress: Progress
  say: Say
}

/** The end of the run is for what is still queued: nothing is submitted any more. */
const DRAIN_SHARE = 0.12
const MOST_DRAIN_MS = 12_000
const MOST_OPEN = 400

/** Sets the stage, submits, watches, tidies up, and answers what was seen. */
export const runDemo = async (options: DemoOptions): Promise<Summary> => {
  const target = await startTargetServer({ port: options.targetPort, seed: options.seed + 1 })
  try {
    const { url, say } = options
    say('Signing in three tenants…')
    const tenants = await Promise.all(TENANTS.map((name) => openTenant(url, name, say)))
    const [northwind, acme, zephyr] = tenants as [Tenant, Tenant, Tenant]
    await requireReach(northwind, target.url)
    await Promise.all([addColleague(url, acme, say), leaveInvitation(northwind)])
    const source = await openWebhookSource(zephyr, { baseUrl: url, targetUrl: target.url })
    const schedule = await startSchedule(northwind)
    try {
      return await perform(options, { tenants, source, targetUrl: target.url })
    } finally {
      // Their server is about to go: what still waits for it would only fail.
      await Promise.allSettled([schedule.pause(), ...tenants.map(cancelCalls)])
    }
  } finally {
    target.stop()
  }
}

type Stage = {
  tenants: Tenant[]
  source: WebhookSource
  targetUrl: string
}

const perform = async (options: DemoOptions, stage: Stage): Promise<Summary> => {
  const { url, signal, progress, rate, seed } = options
  const durationMs = options.seconds * 1000
  const submitMs = durationMs - Math.min(MOST_DRAIN_MS, DRAIN_SHARE * durationMs)
  const beganAtMs = Date.now()
  const observer = createObserver(stage.tenants, new Date(beganAtMs))
  const submitter = createSubmitter({
    ...stage,
    plan: planDemo({ durationMs: submitMs, rate, seed }),
    making: { targetUrl: stage.targetUrl, random: createRandom(seed + 2), now: Date.now },
    isFull: () => observer.jobs().filter((job) => !isFinished(job)).length > MOST_OPEN,
  })
  const { promises } = submitter
  const watch = createWatch({ observer, promises, progress, durationMs, beganAtMs, api: readerOf(stage) })
  const { how, lastAtMs } = await watch.until(submitter.run(signal), signal)
  const snapshot = await watch.look({ lastAtMs, all: true })
  progress.end()
  return summarise({
    url,
    snapshot,
    beganAtMs,
    lastAtMs,
    promises,
    ended: signal.aborted ? 'interrupted' : how,
    jobs: observer.jobs(),
    deadLetters: await readDeadLetters(stage.tenants).catch(() => []),
  })
}

/** The model is the same for all tenants. */
const readerOf = ({ tenants }: Stage): Api => (tenants[0] as Tenant).api

const cancelCalls = ({ api }: Tenant): Promise<unknown> =>
  api.post('/jobs/bulk/cancel', { filter: { tag: DEMO_TAG, type: 'http' } })

const readDeadLetters = async (tenants: readonly Tenant[]): Promise<DeadLetters[]> => {
  const groups = await Promise.all(
    tenants.map(async ({ name, api }) => {
      const { items } = await api.get<Page<Omit<DeadLetters, 'tenant'>>>('/dlq')
      return items.map(({ count, code, message }) => ({ tenant: name, count, code, message }))
    }),
  )
  return groups.flat()
}
