import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { Pool } from 'undici'
import { submitJobs } from '../../../db/queue/submit.ts'
import { startRunner, withHome } from '../../support/local-runner.ts'
import { percentile } from '../report.ts'
import { JOB_TYPE, PAYLOAD } from './contender.ts'
import { IN_FLIGHT } from './enqueue.ts'
import { noopJob } from './smartqueue.ts'

export type HttpRow = {
  what: string
  requests_per_second: number
  jobs_per_second: number
  p50_ms: number
  p99_ms: number
  /** What the function adds to the bare statement, at the median. */
  added_p50_ms?: number
}

type Account = { token: string; orgId: string; userId: string }
type HttpRequest = { path: string; headers: Record<string, string>; body: () => string }

const BATCH = 100

/**
 * Submissions through the real functions on workerd, and their statement alone, sent as the functions send it
 * through the same gateway: the difference is what the functions cost. No worker runs the type, so nothing else
 * uses the machine; `databaseUrl` has it registered.
 */
export const benchHttp = async (
  databaseUrl: string,
  options: { requests: number; say: (line: string) => void },
): Promise<HttpRow[]> => {
  const rows: HttpRow[] = []
  await withHome(async (home) => {
    options.say('Starting the API: gateway, functions on workerd, one worker…')
    const runner = await startRunner(home, { DATABASE_URL: databaseUrl })
    const api = new Pool(runner.url, { connections: IN_FLIGHT })
    const gateway = readGateway(home)
    const statements = new Pool(`http://${gateway.address}`, { connections: IN_FLIGHT })
    try {
      const account = await register(runner.url)
      for (const jobs of [1, BATCH]) {
        const requests = Math.ceil(options.requests / Math.sqrt(jobs))
        const viaApi = jobs === 1 ? singleSubmission(account) : batchSubmission(account, jobs)
        if (!(await isOffered(api, viaApi))) {
          options.say(`${viaApi.path} is not there: batches through the API are skipped.`)
          continue
        }
        const bare = await measure(statements, bareStatement(gateway, account, jobs), { requests, jobs })
        const full = await measure(api, viaApi, { requests, jobs })
        const added = { added_p50_ms: full.p50_ms - bare.p50_ms }
        rows.push({ what: jobs === 1 ? 'POST /jobs' : `POST /jobs/batch of ${jobs}`, ...full, ...added })
        rows.push({ what: `its statement alone, ${jobs} job${jobs > 1 ? 's' : ''}`, ...bare })
      }
    } finally {
      await Promise.all([api.destroy(), statements.destroy()])
      process.kill(runner.pid, 'SIGTERM')
      await runner.exited
    }
  })
  return rows
}

const measure = async (pool: Pool, request: HttpRequest, options: { requests: number; jobs: number }) => {
  await inParallel(pool, request, IN_FLIGHT * 2)
  const startMs = performance.now()
  const times = await inParallel(pool, request, options.requests)
  const perSecond = (options.requests / (performance.now() - startMs)) * 1000
  return {
    requests_per_second: perSecond,
    jobs_per_second: perSecond * options.jobs,
    p50_ms: percentile(times, 0.5),
    p99_ms: percentile(times, 0.99),
  }
}

const inParallel = async (pool: Pool, request: HttpRequest, count: number): Promise<number[]> => {
  const times: number[] = []
  let left = count
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const sentMs = performance.now()
      const { status, text } = await send(pool, request)
      if (status >= 300) throw new Error(`${request.path} answered ${status}: ${text}`)
      times.push(performance.now() - sentMs)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, client))
  return times
}

const send = async (pool: Pool, request: HttpRequest): Promise<{ status: number; text: string }> => {
  const { path, headers, body } = request
  const answer = await pool.request({ method: 'POST', path, headers, body: body() })
  return { status: answer.statusCode, text: await answer.body.text() }
}

const isOffered = async (pool: Pool, request: HttpRequest): Promise<boolean> => {
  const { status } = await send(pool, request)
  return status !== 404 && status !== 405
}

const job = { name: 'noop', type: JOB_TYPE, payload: PAYLOAD }

const singleSubmission = (account: Account): HttpRequest => ({
  path: '/jobs',
  headers: jsonHeaders(account),
  body: () => JSON.stringify(job),
})

const batchSubmission = (account: Account, jobs: number): HttpRequest => ({
  path: '/jobs/batch',
  headers: jsonHeaders(account),
  body: () => JSON.stringify({ jobs: Array.from({ length: jobs }, () => job) }),
})

const jsonHeaders = ({ token }: Account) => ({
  'content-type': 'application/json',
  authorization: `Bearer ${token}`,
})

type Gateway = { address: string; connectionString: string }

/** As Neon's driver sends it, with the credentials of a session. */
const bareStatement = (gateway: Gateway, { orgId, userId, token }: Account, jobs: number): HttpRequest => ({
  path: '/sql',
  headers: {
    'content-type': 'application/json',
    'neon-connection-string': gateway.connectionString,
    'neon-raw-text-output': 'true',
    'neon-array-mode': 'true',
  },
  body: () => {
    const { sid: sessionId, secret } = decodeJwt<{ sid: string; secret: string }>(token)
    const member = { orgId, userId, sessionId, keyId: null, secret }
    const { text, values } = submitJobs([{ ...member, jobs: Array.from({ length: jobs }, noopJob) }])
    return JSON.stringify({ query: text, params: values })
  },
})

/** The runner tells its functions where the gateway is, in a file of its home. */
const readGateway = (home: string): Gateway => {
  const bindings = readFileSync(join(home, 'functions.vars'), 'utf8')
  const bindingOf = (name: string): string => new RegExp(`^${name}='(.*)'$`, 'm').exec(bindings)?.[1] ?? ''
  return { address: bindingOf('NEON_GATEWAY'), connectionString: bindingOf('DATABASE_URL') }
}

const register = async (baseUrl: string): Promise<Account> => {
  const response = await fetch(`${baseUrl}/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'bench-http', password: 'correct horse battery' }),
  })
  if (!response.ok) throw new Error(`/auth/register answered ${response.status}: ${await response.text()}`)
  const { access_token, user } = (await response.json()) as {
    access_token: string
    user: { id: string; org_id: string }
  }
  return { token: access_token, orgId: user.org_id, userId: user.id }
}
