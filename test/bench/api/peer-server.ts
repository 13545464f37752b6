/**
 * What a team would build in a day: Fastify with a JWT and zod, in front of another queue. Started with the name of the
 * queue and the URL of its database; tells its parent the port and a token.
 */
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { loadPeer } from '../peers/load.ts'

const JOB_TYPE = 'noop'
const CONNECTIONS = 20

/** The parts of the libraries that are used here. */
type Request = { body: unknown; params: { id: string }; jwtVerify(): Promise<unknown> }
type Reply = { code(status: number): Reply }
type Handler = (request: Request, reply: Reply) => Promise<unknown>
type Fastify = {
  register(plugin: unknown, options: object): Promise<void>
  addHook(name: 'onRequest', hook: Handler): void
  post(path: string, options: object, handler: Handler): void
  get(path: string, handler: Handler): void
  listen(options: object): Promise<string>
  server: { address(): AddressInfo }
  jwt: { sign(claims: object): string }
}
type Zod = { z: typeof import('zod').z }

type Queue = {
  add(job: Job): Promise<string>
  addMany(jobs: readonly Job[]): Promise<unknown>
  find(id: string): Promise<unknown>
}
type Job = { name: string; payload: Record<string, unknown> }

const openGraphile = async (url: string): Promise<Queue> => {
  type Utils = {
    addJob(type: string, payload: object): Promise<{ id: string }>
    addJobs(jobs: object[]): Promise<unknown>
  }
  type Module = {
    Logger: new (factory: unknown) => unknown
    makeWorkerUtils(options: object): Promise<Utils>
  }
  const { Logger, makeWorkerUtils } = await loadPeer<Module>('graphile-worker')
  const pgPool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  pgPool.on('error', () => {})
  const utils = await makeWorkerUtils({ pgPool, logger: new Logger(() => () => {}) })
  const text = 'select * from graphile_worker._private_jobs where id = $1'
  return {
    add: async ({ payload }) => (await utils.addJob(JOB_TYPE, payload)).id,
    addMany: (jobs) => utils.addJobs(jobs.map(({ payload }) => ({ identifier: JOB_TYPE, payload }))),
    find: async (id) => (await pgPool.query({ name: 'find', text, values: [id] })).rows[0],
  }
}

const openPgBoss = async (connectionString: string): Promise<Queue> => {
  type Boss = {
    start(): Promise<unknown>
    send(name: string, data: object): Promise<string>
    insert(name: string, jobs: object[]): Promise<unknown>
    getJobById(name: string, id: string): Promise<unknown>
  }
  const { PgBoss } = await loadPeer<{ PgBoss: new (options: object) => Boss }>('pg-boss')
  const boss = new PgBoss({ connectionString, max: CONNECTIONS, supervise: false, schedule: false })
  await boss.start()
  return {
    add: ({ payload }) => boss.send(JOB_TYPE, payload),
    addMany: (jobs) =>
      boss.insert(
        JOB_TYPE,
        jobs.map(({ payload }) => ({ data: payload })),
      ),
    find: (id) => boss.getJobById(JOB_TYPE, id),
  }
}

const openBullMq = async (url: string): Promise<Queue> => {
  type BullQueue = {
    add(name: string, data: object): Promise<{ id: string }>
    addBulk(jobs: object[]): Promise<unknown>
    getJob(id: string): Promise<{ asJSON(): unknown } | undefined>
  }
  const { Queue } = await loadPeer<{ Queue: new (name: string, options: object) => BullQueue }>('bullmq')
  const queue = new Queue(JOB_TYPE, { connection: { url } })
  return {
    add: async ({ name, payload }) => (await queue.add(name, payload)).id,
    addMany: (jobs) => queue.addBulk(jobs.map(({ name, payload }) => ({ name, data: payload }))),
    find: async (id) => (await queue.getJob(id))?.asJSON(),
  }
}

const QUEUES: Record<string, (url: string) => Promise<Queue>> = {
  'graphile-worker': openGraphile,
  'pg-boss': openPgBoss,
  BullMQ: openBullMq,
}

const [name = '', url = ''] = process.argv.slice(2)
const queue = await QUEUES[name]?.(url)
if (!queue) throw new Error(`Unknown queue "${name}"`)
const { fastify } = await loadPeer<{ fastify: (options: object) => Fastify }>('fastify')
const { default: jwt } = await loadPeer<{ default: unknown }>('@fastify/jwt')
const { z } = await loadPeer<Zod>('zod')

const job = z.object({
  name: z.string().min(1).max(200),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
})
const batch = z.object({ jobs: z.array(job).min(1).max(1_000) })
const present = (one: Job, id?: string) => ({
  id,
  ...one,
  status: 'ready',
  created_at: new Date().toISOString(),
})

const app = fastify({ logger: false })
await app.register(jwt, { secret: 'a secret of the benchmark alone' })
app.addHook('onRequest', (request) => request.jwtVerify())
app.post('/jobs', {}, async (request, reply) => {
  const one = job.parse(request.body)
  reply.code(201)
  return present(one, await queue.add(one))
})
app.post('/jobs/batch', {}, async (request, reply) => {
  const { jobs } = batch.parse(request.body)
  await queue.addMany(jobs)
  reply.code(201)
  return { jobs: jobs.map((one) => present(one)) }
})
app.get('/jobs/:id', async ({ params }, reply) => {
  const found = await queue.find(params.id)
  if (!found) reply.code(404)
  return found ?? {}
})
await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({
  port: app.server.address().port,
  token: app.jwt.sign({ sub: crypto.randomUUID(), role: 'user' }),
})
process.once('disconnect', () => process.exit(0))
