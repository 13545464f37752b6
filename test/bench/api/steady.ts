import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { createRandom } from '../../../functions/prediction/lstm/random.ts'
import { makeRequest } from '../../../worker-runtime/demo/job-requests.ts'
import { KINDS } from '../../../worker-runtime/demo/kinds.ts'
import { startTargetServer } from '../../../worker-runtime/demo/target-server.ts'
import { freePort } from '../../../worker-runtime/local/ports.ts'
import { type LocalRunner, startRunner, withHome } from '../../support/local-runner.ts'
import { logIn, signUp } from '../api-client.ts'
import { align } from '../queue/tables.ts'
import { type BenchReport, percentile } from '../report.ts'
import { keepToken } from './keep-token.ts'
import { type Memory, memoryOf } from './memory.ts'

const SEED = 7
/** Reads pick from this many of the latest jobs. */
const RECENT = 1_000
const SAMPLES = 60

type Options = { seconds: number; rate: number; say: (line: string) => void }
type Sample = { atS: number; memory: Memory }

/**
 * Holds a rate of submissions, of mixed jobs that workers really run, and of reads beside them. Open loop: requests are sent
 * when they are due, however long the ones before take, and latencies count from then.
 */
export const benchSteady = async ({ seconds, rate, say }: Options): Promise<BenchReport> => {
  const times = new Map<string, number[]>()
  const errors = new Map<string, number>()
  const samples: Sample[] = []
  await withHome(async (home) => {
    say('Starting a system of its own: Postgres with fsync on, plain workerd, one worker…')
    const runner = await startRunner(home, {}, ['--workerd'])
    const target = await startTargetServer({ port: await freePort(), seed: SEED })
    const pool = new Pool(runner.url, { connections: 200 })
    try {
      const { account } = await signUp(runner.url, 'driver')
      const token = keepToken(() => logIn(runner.url, account))
      const over = new AbortController()
      const watching = watchMemory(runner, { seconds, say, samples, signal: over.signal })
      say(`${rate} jobs a second for ${seconds} s…`)
      await holdRate({ seconds, rate }, createDriver({ pool, token, targetUrl: target.url, times, errors }))
      over.abort()
      await watching
    } finally {
      await pool.destroy()
      target.stop()
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  const latencies = Object.fromEntries([...times].map(([name, all]) => [name, summarise(all)]))
  return {
    data: { seconds, rate, latencies, errors: Object.fromEntries(errors), memory: samples },
    text: [printLatencies(latencies), printErrors(errors), printMemory(samples, seconds)].join('\n\n'),
  }
}

const holdRate = async (
  { seconds, rate }: { seconds: number; rate: number },
  send: (dueAt: number) => Promise<void>,
): Promise<void> => {
  const startedAt = performance.now()
  const inFlight = new Set<Promise<void>>()
  for (let n = 0; n < seconds * rate; n++) {
    const dueAt = startedAt + (n / rate) * 1_000
    const waitMs = dueAt - performance.now()
    if (waitMs > 0) await delay(waitMs)
    const sent = send(dueAt).finally(() => inFlight.delete(sent))
    inFlight.add(sent)
  }
  await Promise.all(inFlight)
}

type Driving = {
  pool: Pool
  token: () => Promise<string>
  targetUrl: string
  times: Map<string, number[]>
  errors: Map<string, number>
}

/** Sends the submission that is due, and some of the time a read. */
const createDriver = ({ pool, token, targetUrl, times, errors }: Driving) => {
  const random = createRandom(SEED)
  const making = { targetUrl, random, now: Date.now }
  const recent: string[] = []

  const request = async (name: string, path: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' }
    const answer = await pool.request({
      method: body ? 'POST' : 'GET',
      path,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.body.text()
    if (answer.statusCode < 300) return JSON.parse(text)
    errors.set(`${name}: ${answer.statusCode}`, (errors.get(`${name}: ${answer.statusCode}`) ?? 0) + 1)
    return undefined
  }

  const timed = async (name: string, dueAt: number, work: Promise<unknown>): Promise<unknown> => {
    const answer = await work.catch((error: Error) => {
      errors.set(`${name}: ${error.message}`, (errors.get(`${name}: ${error.message}`) ?? 0) + 1)
    })
    const known = times.get(name) ?? []
    known.push(performance.now() - dueAt)
    times.set(name, known)
    return answer
  }

  const send = (dueAt: number, name: string, path: string, body?: object): Promise<unknown> =>
    timed(name, dueAt, request(name, path, body))

  const submit = async (dueAt: number): Promise<void> => {
    const job = (await send(dueAt, 'POST /jobs', '/jobs', makeRequest(drawKind(random), making))) as
      | { id: string }
      | undefined
    if (!job) return
    recent.push(job.id)
    if (recent.length > RECENT) recent.shift()
  }

  const read = (dueAt: number): Promise<unknown> => {
    const draw = random()
    const id = recent[Math.floor(random() * recent.length)]
    if (draw < 0.7 && id) return send(dueAt, 'GET /jobs/{id}', `/jobs/${id}`)
    if (draw < 0.9) return send(dueAt, 'GET /jobs', '/jobs?limit=20')
    return send(dueAt, 'POST /predictions', '/predictions', makeRequest(drawKind(random), making))
  }

  return async (dueAt: number): Promise<void> => {
    await Promise.all([submit(dueAt), random() < 0.5 ? read(dueAt) : undefined])
  }
}

const drawKind = (random: () => number) => {
  const total = KINDS.reduce((sum, { weight }) => sum + weight, 0)
  let left = random() * total
  for (const kind of KINDS) {
    left -= kind.weight
    if (left <= 0) return kind
  }
  throw new Error('There are no kinds of jobs')
}

const watchMemory = async (
  runner: LocalRunner,
  options: { seconds: number; say: (line: string) => void; samples: Sample[]; signal: AbortSignal },
): Promise<void> => {
  const { seconds, say, samples, signal } = options
  const startedAt = performance.now()
  const everyMs = Math.max(1_000, (seconds * 1_000) / SAMPLES)
  while (!signal.aborted) {
    const atS = (performance.now() - startedAt) / 1_000
    const own = { pid: runner.pid, parent: process.pid, command: 'dev.ts' }
    const memory = memoryOf([own, ...runner.processes()])
    samples.push({ atS, memory })
    say(`${Math.round(atS)} s: ${describe(memory)}`)
    await delay(everyMs, undefined, { signal }).catch(() => {})
  }
}

const describe = (memory: Memory): string =>
  Object.entries(memory)
    .map(([name, megabytes]) => `${name} ${Math.round(megabytes)} MB`)
    .join(', ')

type Summary = { requests: number } & Record<'p50_ms' | 'p90_ms' | 'p99_ms' | 'p999_ms' | 'max_ms', number>

const summarise = (times: readonly number[]): Summary => ({
  requests: times.length,
  p50_ms: percentile(times, 0.5),
  p90_ms: percentile(times, 0.9),
  p99_ms: percentile(times, 0.99),
  p999_ms: percentile(times, 0.999),
  max_ms: percentile(times, 1),
})

const printLatencies = (latencies: Record<string, Summary>): string =>
  align([
    ['from when it was due', 'requests', 'p50 ms', 'p90 ms', 'p99 ms', 'p99.9 ms', 'max ms'],
    ...Object.entries(latencies).map(([name, { requests, ...ms }]) => [
      name,
      String(requests),
      ...Object.values(ms).map((value) => value.toFixed(1)),
    ]),
  ])

const printErrors = (errors: ReadonlyMap<string, number>): string =>
  errors.size === 0 ? 'No errors.' : [...errors].map(([what, count]) => `${what}: ${count} times`).join('\n')

/** The second sixth of the run beside the last: in an hour, minutes 10 to 20 beside minutes 50 to 60. */
const printMemory = (samples: readonly Sample[], seconds: number): string => {
  const names = [...new Set(samples.flatMap(({ memory }) => Object.keys(memory)))]
  const meanOf = (name: string, fromS: number, toS: number): number => {
    const found = samples.filter(({ atS }) => atS >= fromS && atS <= toS)
    // A short run has no sample in some sixth.
    const within = found.length > 0 ? found : samples
    return within.reduce((sum, { memory }) => sum + (memory[name] ?? 0), 0) / within.length
  }
  const sixth = seconds / 6
  const rows = names.map((name) => {
    const [first, early, late] = [
      samples[0]?.memory[name] ?? 0,
      meanOf(name, sixth, 2 * sixth),
      meanOf(name, 5 * sixth, seconds),
    ]
    return [name, ...[first, early, late].map((value) => value.toFixed(0)), (late / early).toFixed(2)]
  })
  return align([['memory, MB', 'at the start', 'second sixth', 'last sixth', 'last / second'], ...rows])
}
