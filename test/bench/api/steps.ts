import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { JOB_TYPE, PAYLOAD } from '../queue/contender.ts'
import { treeCpuMs } from '../queue/process-cpu.ts'
import { percentile } from '../report.ts'
import type { Server } from './servers.ts'

type Request = { method: 'GET' | 'POST'; path: string; body?: object; headers?: Record<string, string> }

/** A kind of request, and how many are in flight. */
export type Step = {
  readonly name: string
  readonly inFlight: number
  readonly request: (ids: readonly string[]) => Request
  /** Only SmartQueue has it. */
  readonly isOwn?: boolean
}

export type Measured = {
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** Milliseconds of CPU time for a request, by process. */
  cpuMs: Record<string, number>
}

const JOB = { name: 'noop', type: JOB_TYPE, payload: PAYLOAD }

const post = (): Request => ({ method: 'POST', path: '/jobs', body: JOB })
const batch = (jobs: number) => (): Request => ({
  method: 'POST',
  path: '/jobs/batch',
  body: { jobs: Array.from({ length: jobs }, () => JOB) },
})
const keyed = (): Request => ({ ...post(), headers: { 'idempotency-key': crypto.randomUUID() } })
const read = (ids: readonly string[]): Request => ({
  method: 'GET',
  path: `/jobs/${ids[Math.floor(Math.random() * ids.length)]}`,
})
const list = (limit: number) => (): Request => ({ method: 'GET', path: `/jobs?limit=${limit}` })
const predict = (): Request => ({ method: 'POST', path: '/predictions', body: JOB })

const inFlights = (name: string, request: Step['request'], isOwn = false): Step[] =>
  [1, 10, 50].map((inFlight) => ({ name, inFlight, request, isOwn }))

export const STEPS: readonly Step[] = [
  ...inFlights('POST /jobs', post),
  ...inFlights('POST /jobs with a key', keyed, true),
  ...inFlights('POST /jobs/batch of 100', batch(100)),
  ...inFlights('GET /jobs/{id}', read),
  ...inFlights('GET /jobs?limit=1', list(1), true),
  ...inFlights('GET /jobs?limit=50', list(50), true),
  ...inFlights('POST /predictions', predict, true),
]

/** Repeats the request for this long, and as many at a time as the step says. */
export const runStep = async (
  server: Server,
  step: Step,
  options: { seconds: number; ids: readonly string[] },
): Promise<Measured> => {
  const pool = new Pool(server.origin, { connections: step.inFlight })
  const authorization = `Bearer ${await server.token()}`
  const send = () => sendRequest(pool, step.request(options.ids), authorization)
  try {
    await repeat(send, step.inFlight, options.seconds * 0.25)
    await settled()
    const before = await cpuOf(server)
    const startedAt = performance.now()
    const times = await repeat(send, step.inFlight, options.seconds)
    const tookMs = performance.now() - startedAt
    const after = await cpuOf(server)
    return {
      perSecond: (times.length / tookMs) * 1_000,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      cpuMs: Object.fromEntries(
        Object.entries(after).map(([part, ms]) => [part, (ms - (before[part] ?? 0)) / times.length]),
      ),
    }
  } finally {
    await pool.destroy()
  }
}

/** Ids of queued jobs to read. */
export const submitJobs = async (server: Server, count: number): Promise<string[]> => {
  const ids: string[] = []
  await sendMany(server, count, post, (answer) => ids.push((answer as { id: string }).id))
  return ids
}

export const submitBatches = (server: Server, jobs: number): Promise<void> =>
  sendMany(server, jobs / 1_000, batch(1_000))

const sendMany = async (
  server: Server,
  count: number,
  request: () => Request,
  onAnswer = (_answer: unknown): void => {},
): Promise<void> => {
  const pool = new Pool(server.origin, { connections: 4 })
  const authorization = `Bearer ${await server.token()}`
  let left = count
  const client = async (): Promise<void> => {
    while (left-- > 0) onAnswer(await sendRequest(pool, request(), authorization))
  }
  await Promise.all(Array.from({ length: 4 }, client))
  await pool.destroy()
}

const sendRequest = async (pool: Pool, request: Request, authorization: string): Promise<unknown> => {
  const { method, path, body, headers } = request
  const answer = await pool.request({
    method,
    path,
    headers: { authorization, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`)
  return method === 'POST' ? JSON.parse(text) : undefined
}

/** How long each took, in milliseconds. */
const repeat = async (send: () => Promise<unknown>, inFlight: number, seconds: number): Promise<number[]> => {
  const times: number[] = []
  const endAt = performance.now() + seconds * 1_000
  const client = async (): Promise<void> => {
    while (performance.now() < endAt) {
      const sentAt = performance.now()
      await send()
      times.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return times
}

/** Lets background work of earlier requests finish. */
const settled = (): Promise<void> => delay(100)

const cpuOf = async (server: Server): Promise<Record<string, number>> => {
  const own = Object.entries(server.pids).map(([part, pid]) => [part, treeCpuMs(pid) ?? Number.NaN])
  const { cpuMs } = await server.store.usage(server.databaseUrl)
  return Object.fromEntries([...own, ['database', cpuMs ?? Number.NaN]])
}
