import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { setQuotas } from '../../../db/queries/quotas.ts'
import type { NewJob } from '../../../db/queue/job-fields.ts'
import { submitJobs } from '../../../db/queue/submit.ts'
import { newJob, seedTenant } from '../../support/jobs.ts'
import type { Arena } from '../queue/arena.ts'
import type { Contender } from '../queue/contender.ts'
import { BEYOND_REACH, runOn, smartqueue, urlOf } from '../queue/smartqueue.ts'
import { startWorkers } from '../queue/worker-processes.ts'
import { historyOf, type Load } from './history.ts'
import type { Execution } from './windows.ts'

export const SLEEP = 'sleep'

/** Real worker processes on a real Postgres run these loads, and the database tells when each job ran. */
export const runOnWorkers = (
  arena: Arena,
  loads: readonly Load[],
  options: {
    workers: number
    slots: number
    seed: number
    /** The run ends when all jobs of these have ended: of everyone, unless given. */
    until?: (org: string) => boolean
  },
): Promise<Execution[]> => {
  const contender = withSlots(options.slots)
  return arena.withEmpty(contender, async (url) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const ids = await createOrgs(client, loads)
    const processes = await startWorkers(contender, { url, count: options.workers, mode: 'pickup' })
    try {
      return await run(client, url, { loads, ids, ...options })
    } finally {
      await processes.stop()
      await client.end()
    }
  })
}

const withSlots = (slots: number): Contender => ({
  ...smartqueue,
  worker: { file: new URL('./worker.ts', import.meta.url), env: { BENCH_SLOTS: String(slots) } },
})

/** The id of each organisation by its name. */
const createOrgs = async (client: pg.Client, loads: readonly Load[]): Promise<Map<string, string>> => {
  const run = runOn(client)
  await run(setQuotas(null, BEYOND_REACH))
  const ids = new Map<string, string>()
  for (const { org } of loads) if (!ids.has(org)) ids.set(org, (await seedTenant(run)).orgId)
  return ids
}

type Run = {
  loads: readonly Load[]
  ids: ReadonlyMap<string, string>
  seed: number
  until?: (org: string) => boolean
}

/** Every series has run before, so that it is predicted from its own runs. */
const WARM_UPS = 3
const BATCH = 1_000
/** Jobs that are due within this time are submitted together. */
const TICK_MS = 10

const run = async (
  client: pg.Client,
  url: string,
  { loads, ids, seed, until }: Run,
): Promise<Execution[]> => {
  const submitter = new pg.Client({ connectionString: urlOf(url, 'workers') })
  await submitter.connect()
  const submit = async (jobs: readonly { org: string; job: NewJob }[]): Promise<void> => {
    for (let n = 0; n < jobs.length; n += BATCH) {
      const byOrg = Map.groupBy(jobs.slice(n, n + BATCH), ({ org }) => org)
      const groups = [...byOrg].map(([org, ofOrg]) => ({
        orgId: ids.get(org) as string,
        userId: null,
        jobs: ofOrg.map(({ job }) => job),
      }))
      await runOn(submitter)(submitJobs(groups))
    }
  }
  try {
    const kinds = [...new Map(loads.map((load) => [`${load.org} ${nameOf(load)}`, load])).values()]
    await submit(
      kinds.flatMap((load) => Array.from({ length: WARM_UPS }, () => ({ org: load.org, job: toJob(load) }))),
    )
    await untilEnded(client, [...ids.values()])
    const beganAt = (await client.query('select clock_timestamp()::text as at')).rows[0].at as string
    await submitInTime(schedule(loads, seed), submit)
    await untilEnded(
      client,
      [...ids].flatMap(([org, id]) => ((until?.(org) ?? true) ? [id] : [])),
    )
    return await readExecutions(client, ids, beganAt)
  } finally {
    await submitter.end()
  }
}

type Due = { org: string; atS: number; load: Load; runtimeMs: number }

const schedule = (loads: readonly Load[], seed: number): Due[] =>
  loads
    .flatMap((load, n) =>
      historyOf([load], seed + n).map(({ org, submitS, runtimeMs }) => ({
        org,
        atS: submitS,
        load,
        runtimeMs,
      })),
    )
    .sort((a, b) => a.atS - b.atS)

const submitInTime = async (
  due: readonly Due[],
  submit: (jobs: { org: string; job: NewJob }[]) => Promise<void>,
): Promise<void> => {
  // Submit the initial backlog first; the clock starts when that is done.
  const first = due.filter(({ atS }) => atS === 0)
  await submit(first.map(({ org, load, runtimeMs }) => ({ org, job: toJob(load, runtimeMs) })))
  const startedMs = performance.now()
  for (let n = first.length; n < due.length; ) {
    const nowS = (performance.now() - startedMs) / 1000
    const now: { org: string; job: NewJob }[] = []
    for (let next = due[n]; next && next.atS <= nowS; next = due[++n])
      now.push({ org: next.org, job: toJob(next.load, next.runtimeMs) })
    if (now.length > 0) await submit(now)
    else await delay(TICK_MS)
  }
}

const nameOf = ({ runtimeS, priority }: Load): string => `${priority ?? 'normal'} ${runtimeS} s`

const toJob = (load: Load, runtimeMs = load.runtimeS * 1_000): NewJob =>
  newJob({
    type: SLEEP,
    name: nameOf(load),
    payload: { ms: Math.round(runtimeMs) },
    priority: load.priority ?? 'normal',
    deadline:
      load.deadlineS === undefined ? null : new Date(Date.now() + load.deadlineS * 1_000).toISOString(),
  })

const untilEnded = async (client: pg.Client, orgs: readonly string[]): Promise<void> => {
  while (Number((await client.query(UNFINISHED, [orgs])).rows[0].jobs) > 0) await delay(100)
}

const UNFINISHED = `
  select
    (select count(*) from smartqueue.ready_jobs where org_id = any ($1::uuid[])) +
    (select count(*) from smartqueue.held_jobs where org_id = any ($1::uuid[])) as jobs`

const readExecutions = async (
  client: pg.Client,
  ids: ReadonlyMap<string, string>,
  beganAt: string,
): Promise<Execution[]> => {
  const orgs = new Map([...ids].map(([org, id]) => [id, org]))
  const { rows } = await client.query(EXECUTIONS, [beganAt])
  return rows.map(({ org_id: id, ready, started, ran }) => ({
    org: orgs.get(id) as string,
    readyS: Number(ready),
    startedS: Number(started),
    endedS: Number(started) + Number(ran) / 1_000,
  }))
}

const EXECUTIONS = `
  select
    f.org_id,
    extract(epoch from j.created_at) as ready,
    extract(epoch from f.started_at) as started,
    f.runtime_ms as ran
  from smartqueue.finished_jobs f
  join smartqueue.jobs j on j.org_id = f.org_id and j.id = f.job_id
  where f.finished_at >= $1::timestamptz
    and j.created_at >= $1::timestamptz
    and f.state = 'completed'`
