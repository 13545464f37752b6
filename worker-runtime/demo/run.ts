import { setTimeout as delay } from 'node:timers/promises'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import type { Page } from './api.ts'
import { addColleague, leaveInvitation, startSchedule } from './company-life.ts'
import { DEMO_TAG } from './job-requests.ts'
import { TENANTS } from './kinds.ts'
import { createObserver, isFinished, type Observer } from './observer.ts'
import { planDemo } from './plan.ts'
import type { Progress } from './progress.ts'
import { requireReach } from './require-reach.ts'
import { type ModelState, type Snapshot, takeSnapshot } from './snapshot.ts'
import { createSubmitter, type Submitter } from './submitter.ts'
import { type DeadLetters, type Summary, summarise } from './summary.ts'
import { startTargetServer } from './target-server.ts'
import { openTenant, type Say, type Tenant } from './tenants.ts'
import { openWebhookSource } from './webhook-source.ts'

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
/** A queue that is not empty by then is not waited for. */
const OVERTIME_MS = 15_000
const LOOK_MS = 1_000
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
  source: Awaited<ReturnType<typeof openWebhookSource>>
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
  let lastAtMs = beganAtMs + submitMs
  let gone: unknown
  const submitting = submitter
    .run(signal)
    .catch((error: unknown) => {
      gone = error
    })
    .finally(() => {
      lastAtMs = Date.now()
    })
  const watch = createWatch({
    ...options,
    tenants: stage.tenants,
    durationMs,
    beganAtMs,
    observer,
    submitter,
  })
  const isOver = (): boolean =>
    signal.aborted || gone !== undefined || Date.now() > beganAtMs + durationMs + OVERTIME_MS
  let submitted = false
  void submitting.then(() => {
    submitted = true
  })
  while (!isOver() && !(submitted && isDrained(observer))) {
    await watch.look(lastAtMs)
    await delay(LOOK_MS, undefined, { signal }).catch(() => {})
  }
  await submitting
  const snapshot = await watch.look(lastAtMs, true)
  progress.show(snapshot)
  progress.end()
  if (gone) options.say(`SmartQueue does not answer any more: ${watch.failure() ?? gone}`)
  return summarise({
    url,
    snapshot,
    beganAtMs,
    lastAtMs,
    complete: !signal.aborted && gone === undefined,
    jobs: observer.jobs(),
    promises: submitter.promises,
    deadLetters: gone === undefined ? await readDeadLetters(stage.tenants) : [],
  })
}

/** Nothing is on its way; what waits for its time may go on waiting. */
const isDrained = (observer: Observer): boolean =>
  observer.jobs().every((job) => isFinished(job) || job.status === 'pending')

/** Looks, and shows what it sees. A look that fails shows what was seen before. */
const createWatch = (
  options: Pick<DemoOptions, 'progress'> & {
    tenants: Tenant[]
    durationMs: number
    beganAtMs: number
    observer: Observer
    submitter: Submitter
  },
) => {
  let model: ModelState = { version: null, trained_on: 0, learned: 0 }
  let failure: string | undefined

  const look = async (lastAtMs: number, all = false): Promise<Snapshot> => {
    const { observer, submitter, durationMs, beganAtMs, tenants } = options
    try {
      const [card] = await Promise.all([tenants[0]?.api.get<ModelState>('/model'), observer.look(all)])
      if (card) model = { version: card.version, trained_on: card.trained_on, learned: card.learned }
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error)
    }
    const seen = { jobs: observer.jobs(), promises: submitter.promises, model }
    const snapshot = takeSnapshot(seen, { beganAtMs, nowMs: Date.now(), lastAtMs, durationMs })
    options.progress.show(snapshot)
    return snapshot
  }

  return { look, failure: () => failure }
}

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
