/**
 * Sends hostile and almost valid input to every operation in the OpenAPI document. No response may be a 5xx,
 * and every error must be a problem document. FUZZ_REQUESTS sets the number of requests; FUZZ_SEED repeats a
 * run.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { findCallbackAddress } from '../../db/queries/callback-delivery.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { createInput, HOSTILE_TEXTS, MALFORMED, pick, type Schema } from '../support/hostile-input.ts'
import { jobInState } from '../support/job-in-state.ts'
import { lead } from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { createRawClient, type RawAnswer, type RawRequest } from '../support/raw-request.ts'
import { send as sendEvent, webhooksOf } from '../support/webhooks.ts'

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 1_500)
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000)
const IN_FLIGHT = 20

type Parameter = { in: 'path' | 'query' | 'header'; name: string; schema: Schema }
type Operation = {
  method: string
  path: string
  permission: string | undefined
  parameters: Parameter[]
  body: Schema | undefined
}

let database: TestDatabase
let edge: Edge
let schemas: Record<string, Schema>
let operations: Operation[]
/** Has jobs, schedules, sources and endpoints. */
let owner: TestAccount
/** A platform admin. */
let admin: TestAccount
/** May lose their sign-in, their membership or their organisation. */
let expendable: TestAccount[]
/** Ids of existing resources, by the first segment of their path. */
const ids = new Map<string, string[]>()

before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  await reportLive(database.run)
  await lead(database.run)
  const accounts = await Promise.all(Array.from({ length: 14 }, () => registerUser(edge)))
  ;[owner, admin, ...expendable] = accounts as [TestAccount, TestAccount, ...TestAccount[]]
  await database.sql('update users set is_admin = true where id = $1', [admin.userId])
  await database.run(findCallbackAddress(owner.orgId, 'https://example.com/'))
  await seed()
  const { body } = await edge.request('GET', '/openapi.json')
  schemas = body.components.schemas
  operations = readOperations(body.paths)
})
after(async () => {
  await edge?.stop()
  await database?.drop()
})

const seed = async (): Promise<void> => {
  const jobs: string[] = []
  for (const state of JOB_STATES) jobs.push(await jobInState(database.run, owner, state))
  ids.set('jobs', jobs)
  const webhooks = webhooksOf(edge, owner)
  const source = await webhooks.make()
  const delivered = await sendEvent(edge, source, { n: 1 })
  ids.set('hooks', [source.id])
  ids.set('webhooks', [source.id, delivered.body.delivery_id])
  const job = { type: 'test', payload: {} }
  for (const [path, json] of [
    ['schedules', { name: 'n', cron: '0 0 * * *', job }],
    ['callbacks/endpoints', { url: 'https://example.com/' }],
    ['auth/keys', { name: 'k', scopes: ['jobs:read'] }],
  ] as const) {
    const { body, status, text } = await edge.request('POST', `/${path}`, { token: owner.token, json })
    assert.equal(status, 201, text)
    ids.set(path.split('/')[0] ?? '', [body.id])
  }
  ids.set('orgs', [...expendable.map(({ orgId }) => orgId), ...expendable.map(({ userId }) => userId)])
}

type Document = Record<
  string,
  Record<
    string,
    {
      'x-permission'?: string
      parameters?: Parameter[]
      requestBody?: { content: Record<string, { schema: Schema }> }
    }
  >
>

const readOperations = (paths: Document): Operation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      permission: operation['x-permission'],
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content['application/json']?.schema,
    })),
  )

/** Hashing a password takes a fifth of a second. */
const HASHES = new Set(['/auth/register', '/auth/login', '/auth/password'])
const MOST_HASHES = 6

/** All operations are equally frequent, except those that hash a password. */
const planOf = (count: number): Operation[] => {
  const plan: Operation[] = []
  for (let round = 0; plan.length < count; round++) {
    plan.push(...operations.filter(({ path }) => !HASHES.has(path) || round < MOST_HASHES))
  }
  return plan.slice(0, count)
}

/** Request number `n` depends on the seed and on the ids that earlier requests have created. */
const requestOf = ({ method, path, permission, parameters, body }: Operation, n: number): RawRequest => {
  const random = createRandom(SEED * 1_000_003 + n)
  const known = ids.get(path.split('/')[1] ?? '') ?? []
  const all = [...ids.values()].flat()
  const realText = (format: string | undefined): string =>
    format === 'uuid'
      ? pick(random, random() < 0.8 && known.length > 0 ? known : all)
      : pick(random, REAL_TEXTS)
  const resolve = (ref: string): Schema => schemas[ref.split('/').at(-1) ?? ''] ?? {}
  const { json, parameter, chance } = createInput({ random, resolve, realText })
  // Mostly almost valid: input that is wrong everywhere is rejected by the first check.
  const faults = pick(random, [0, 0, 0.05, 0.05, 0.2, 0.6])

  const pathFor = (): string =>
    path.replaceAll(/\{(\w+)\}/g, () =>
      encode(chance(faults) ? pick(random, HOSTILE_TEXTS) : realText('uuid')),
    )
  const queryFor = (): string => {
    const pairs = parameters
      .filter((one) => one.in === 'query' && chance(0.5))
      .map(({ name, schema }) => {
        const value = name.endsWith('cursor') && chance(0.7) ? cursor() : parameter(schema, faults)
        return `${encode(name)}=${encode(value)}`
      })
    if (chance(faults)) pairs.push(...pairs, `${encode(pick(random, HOSTILE_TEXTS))}=%zz`)
    return pairs.length > 0 ? `?${pairs.join('&')}` : ''
  }
  const cursor = (): string => {
    const position = chance(0.5) ? pick(random, HOSTILE_TEXTS) : pick(random, [...CURSORS, ...all])
    return chance(0.8) ? Buffer.from(position).toString('base64url') : position
  }
  const headersFor = (): [string, string][] => {
    const headers = parameters
      .filter((one) => one.in === 'header' && chance(0.5))
      .map(({ name, schema }): [string, string] => [name, toHeader(parameter(schema, faults))])
    headers.push(['cf-connecting-ip', `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`])
    if (path === '/jobs/stream') headers.push(...UPGRADE)
    if (chance(0.97)) headers.push(['authorization', `Bearer ${tokenFor()}`])
    if (chance(faults)) headers.push(pick(random, ABSURD_HEADERS))
    return headers
  }
  const tokenFor = (): string => {
    if (permission === 'platform') return admin.token
    if (LOSES.has(permission ?? '') && method !== 'GET') return pick(random, expendable).token
    return chance(0.9) ? owner.token : pick(random, [admin, ...expendable]).token
  }
  const bodyFor = (): Pick<RawRequest, 'body'> & { headers: [string, string][] } => {
    if (!body && !chance(faults)) return { headers: [] }
    const text = chance(faults / 4) ? pick(random, MALFORMED) : json(body ?? {}, faults)
    const bytes = Buffer.from(text)
    const half = Math.floor(bytes.length / 2)
    const chunks = [bytes.subarray(0, half), bytes.subarray(half)].filter(({ length }) => length > 0)
    const type = chance(faults / 4) ? pick(random, MEDIA_TYPES) : 'application/json'
    return { body: chance(0.3) ? chunks : bytes, headers: [['content-type', type]] }
  }

  const { body: bytes, headers } = bodyFor()
  return { method, path: pathFor() + queryFor(), headers: [...headersFor(), ...headers], body: bytes }
}

/** With these permissions somebody can end a sign-in, a membership or an organisation. */
const LOSES = new Set(['account', 'org:manage', 'org:leave'])
const REAL_TEXTS = [
  'test',
  'n',
  'jobs:read',
  'events,logs',
  'start',
  '24h',
  'Europe/Berlin',
  '0 0 * * *',
  'a,b',
]
const CURSORS = ['1', '7481-1204-3', '2026-01-01T00:00:00.000Z', '9223372036854775807', `1.${'0'.repeat(32)}`]
const MEDIA_TYPES = [
  'text/plain',
  'application/json;',
  'application/problem+json',
  'multipart/form-data',
  '\t',
  'a/b',
]
const UPGRADE: [string, string][] = [
  ['connection', 'upgrade'],
  ['upgrade', 'websocket'],
  ['sec-websocket-version', '13'],
  ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
]
const ABSURD_HEADERS: [string, string][] = [
  ['smartqueue-org', 'me'],
  ['smartqueue-org', '__proto__'],
  ['traceparent', '00-ffff'],
  ['traceparent', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`],
  ['origin', 'null'],
  ['cookie', '__Host-smartqueue=%00; =; a'],
  ['if-none-match', '*'],
  ['range', 'bytes=9-1'],
  ['accept', 'x'.repeat(4_000)],
  ['content-encoding', 'br'],
  ['cf-connecting-ip', '::ffff:999.1.1.1'],
  ['idempotency-key', 'ÿ'.repeat(300)],
  ['last-event-id', '99999999999999999999-0-0'],
  ['sec-websocket-protocol', 'ticket., smartqueue.v1'],
]

/** A lone surrogate is not valid UTF-8, but can be encoded as three bytes. */
const encode = (text: string): string => (text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80')

const toHeader = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?')

/** Why a response is wrong. */
const faultOf = ({ status, type }: RawAnswer, { path }: Operation): string | undefined => {
  // A 503 is documented for `/autoscale` without a snapshot and for a database that is not ready.
  if (status === 503 && (path === '/autoscale' || path === '/readyz')) return undefined
  if (status >= 500) return 'is a server error'
  if (status >= 400 && !type.startsWith('application/problem+json')) return 'is not problem+json'
  return undefined
}

/** Later requests use the ids of created resources. */
const keepId = ({ status, text }: RawAnswer, { path }: Operation): void => {
  const id = status === 201 ? /"id":"([0-9a-f-]{36})"/.exec(text)?.[1] : undefined
  if (id) ids.get(path.split('/')[1] ?? '')?.push(id)
}

/** A connection closed without a response is as bad as a 5xx. */
const asAnswer = (error: Error): RawAnswer => ({ status: 599, type: '', text: error.message })

const show = ({ method, path, headers, body }: RawRequest): string => {
  const hidden = headers.map(([name, value]) => `${name}: ${name === 'authorization' ? '…' : value}`)
  const bytes = Array.isArray(body) ? Buffer.concat(body) : body
  return `${method} ${path}\n${hidden.join('\n')}\n${Array.isArray(body) ? '(chunked) ' : ''}${bytes ?? ''}`
}

test(`no input to any operation causes a 5xx (FUZZ_SEED=${SEED})`, async (t) => {
  t.diagnostic(`${REQUESTS} requests, FUZZ_SEED=${SEED}`)
  const client = createRawClient(edge.url, IN_FLIGHT)
  const plan = planOf(REQUESTS).entries()
  const failures: string[] = []
  const statuses = new Map<number, number>()
  const worker = async (): Promise<void> => {
    for (const [n, operation] of plan) {
      const request = requestOf(operation, n)
      const answer = await client.send(request).catch(asAnswer)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      keepId(answer, operation)
      const fault = faultOf(answer, operation)
      if (fault) failures.push(`${answer.status} ${fault}: ${answer.text.slice(0, 500)}\n${show(request)}`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  client.close()
  t.diagnostic(
    [...statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, n]) => `${status}: ${n}`)
      .join(', '),
  )
  assert.deepEqual(failures, [])
  const accepted = [...statuses].reduce((sum, [status, n]) => sum + (status < 300 ? n : 0), 0)
  assert.ok(accepted > REQUESTS / 5, 'enough requests are valid to get past validation')
})
