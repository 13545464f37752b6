import { setTimeout as delay } from 'node:timers/promises'
import { describeError } from '../describe-error.ts'
import { Unreachable } from './api.ts'
import { inSeconds, type JobRequest, type Making, makeRequest } from './job-requests.ts'
import type { TenantName } from './kinds.ts'
import type { Action, Planned } from './plan.ts'
import type { Tenant } from './tenants.ts'
import type { WebhookSource } from './webhook-source.ts'

/** What the answers to submissions have said, and no later look tells. */
export type Promises = {
  /** When a job will have ended, nine times of ten. */
  readonly finishBy: Map<string, string>
  /** Jobs that, as was said at once, will miss their deadline. */
  readonly atRisk: Set<string>
  /** The last job of each pipeline. */
  readonly pipelineEnds: string[]
  readonly deliveries: Record<string, number>
  /** Sent again, and known by their key. */
  replayed: number
  /** What the API did not take, or not answer. */
  refused: number
  lastRefusal: string | null
}

type Answer = { id: string; eta: { finish_p90_at: string } | null; deadline_at_risk: boolean }

export type SubmissionEnd = 'done' | 'interrupted' | 'unreachable'

export type Submitter = {
  readonly promises: Promises
  /** Acts at the planned times, until all is done, the signal comes, or the system does not answer any more. */
  run(signal: AbortSignal): Promise<SubmissionEnd>
}

/** No answer for so long, to so many requests, and the system is gone. One that is only busy answers some. */
const GONE_MS = 5_000
const GONE_REQUESTS = 3
/** Requests at a time: a system that stands still for a moment is not flooded when it goes on. */
const MOST_IN_FLIGHT = 50

export const createSubmitter = (options: {
  plan: readonly Planned[]
  tenants: readonly Tenant[]
  source: WebhookSource
  making: Making
  /** Too many jobs wait: a system that is slower than the demo reckons with is not buried under them. */
  isFull: () => boolean
}): Submitter => {
  const { plan, source, making } = options
  const promises: Promises = {
    finishBy: new Map(),
    atRisk: new Set(),
    pipelineEnds: [],
    deliveries: {},
    replayed: 0,
    refused: 0,
    lastRefusal: null,
  }

  const apiOf = (name: TenantName) => {
    const tenant = options.tenants.find((one) => one.name === name)
    if (!tenant) throw new Error(`There is no tenant ${name}`)
    return tenant.api
  }

  const note = (answer: Answer): Answer => {
    if (answer.eta) promises.finishBy.set(answer.id, answer.eta.finish_p90_at)
    if (answer.deadline_at_risk) promises.atRisk.add(answer.id)
    return answer
  }

  const submit = async (tenant: TenantName, request: JobRequest): Promise<Answer> =>
    note(await apiOf(tenant).post<Answer>('/jobs', request))

  const act = async (action: Action, signal: AbortSignal): Promise<void> => {
    switch (action.do) {
      case 'submit':
        await submit(action.kind.tenant, makeRequest(action.kind, making))
        return
      case 'submit-twice': {
        const key = `demo-${making.now()}-${Math.floor(making.random() * 1e9)}`
        const request = { ...makeRequest(action.kind, making), idempotency_key: key }
        const first = await submit(action.kind.tenant, request)
        const second = await apiOf(action.kind.tenant).post<Answer>('/jobs', request)
        if (second.id === first.id) promises.replayed++
        return
      }
      case 'submit-for-later': {
        const run_at = inSeconds(making.now(), action.delaySeconds)
        await apiOf(action.kind.tenant).post('/jobs', { ...makeRequest(action.kind, making), run_at })
        return
      }
      case 'submit-and-cancel': {
        const { id } = await submit(action.kind.tenant, makeRequest(action.kind, making))
        promises.finishBy.delete(id)
        await delay(action.afterMs, undefined, { signal }).catch(() => {})
        await apiOf(action.kind.tenant).patch(`/jobs/${id}/cancel`)
        return
      }
      case 'submit-pipeline': {
        const { tenant, make } = action.pipeline
        const { jobs } = await apiOf(tenant).post<{ jobs: Answer[] }>('/jobs/batch', { jobs: make(making) })
        for (const job of jobs) note(job)
        promises.pipelineEnds.push(jobs.at(-1)?.id ?? '')
        return
      }
      case 'deliver': {
        const { status } = await source.deliver(action.push)
        promises.deliveries[status] = (promises.deliveries[status] ?? 0) + 1
      }
    }
  }

  return {
    promises,
    run: async (signal) => {
      const beganAtMs = performance.now()
      const running = new Set<Promise<void>>()
      let answeredAtMs = beganAtMs
      let unanswered = 0
      const isGone = (): boolean => unanswered >= GONE_REQUESTS && performance.now() - answeredAtMs > GONE_MS
      const noteAnswer = (): void => {
        answeredAtMs = performance.now()
        unanswered = 0
      }
      for (const { atMs, ...action } of plan) {
        const waitMs = beganAtMs + atMs - performance.now()
        if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => {})
        if (signal.aborted || isGone()) break
        if (action.do === 'submit' && (running.size >= MOST_IN_FLIGHT || options.isFull())) continue
        const acting: Promise<void> = act(action as Action, signal)
          .then(noteAnswer, (error: unknown) => {
            if (error instanceof Unreachable) unanswered++
            else noteAnswer()
            promises.refused++
            promises.lastRefusal = describeError(error)
          })
          .finally(() => running.delete(acting))
        running.add(acting)
      }
      await Promise.all(running)
      if (isGone()) return 'unreachable'
      return signal.aborted ? 'interrupted' : 'done'
    },
  }
}
