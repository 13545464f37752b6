import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { z } from 'zod'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { createJobSessions } from '../../worker-runtime/connections/job-sessions.ts'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch } from '../../worker-runtime/egress/guarded-fetch.ts'
import type { JobContext } from '../../worker-runtime/handler-api.ts'
import { run } from '../../worker-runtime/handlers/etl/run.ts'
import { schema } from '../../worker-runtime/handlers/etl/schema.ts'
import type { EtlResult } from '../../worker-runtime/handlers/etl/target.ts'

export type EtlInput = z.input<typeof schema>

export type EtlJob = {
  readonly id: string
  readonly log: string[]
  readonly notes: string[]
  /** What `ctx.checkpoint` has kept. */
  checkpoint: unknown
  /** One attempt of the job, the way the executor makes it: its sessions end with it. */
  attempt(overrides?: Partial<JobContext>, wrap?: Wrap): Promise<EtlResult>
}

/** Stands between the handler and its connections. */
type Wrap = (open: JobContext['postgres']) => JobContext['postgres']

/** An etl job that may reach servers on this machine, and the database at `url` as "warehouse". */
export const prepareEtl = (t: TestContext, payload: EtlInput, url = ''): EtlJob => {
  const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
  t.after(() => guard.close())
  const job: EtlJob = { id: uuidV7(), log: [], notes: [], checkpoint: null, attempt }
  const say = (line: string) => void job.log.push(line)
  let attempts = 0

  async function attempt(
    overrides: Partial<JobContext> = {},
    wrap: Wrap = (open) => open,
  ): Promise<EtlResult> {
    attempts += 1
    const signal = overrides.signal ?? new AbortController().signal
    const ids = { jobId: job.id, orgId: job.id }
    const sessions = createJobSessions({ connections: { warehouse: { url } }, ...ids, signal })
    const ctx: JobContext = {
      ...ids,
      attempt: attempts,
      fencingToken: String(attempts),
      signal,
      log: { debug: say, info: say, warn: say, error: say },
      progress: (_fraction, note) => void job.notes.push(note ?? ''),
      lastCheckpoint: job.checkpoint,
      checkpoint: async (state) => {
        job.checkpoint = JSON.parse(JSON.stringify(state))
      },
      fetch: guard.fetch,
      postgres: wrap(sessions.open),
      ...overrides,
    }
    try {
      return await run(schema.parse(payload), ctx)
    } finally {
      await sessions.close()
    }
  }
  return job
}

/** Runs an etl job that succeeds at its first attempt. */
export const runEtl = (t: TestContext, payload: EtlInput, url?: string): Promise<EtlResult> =>
  prepareEtl(t, payload, url).attempt()

export const serve = async (t: TestContext, listener: RequestListener): Promise<string> => {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
