import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { z } from 'zod'
import { createApiClient } from '../../worker-runtime/cluster/api-client.ts'
import { costOf } from '../../worker-runtime/controller/deletion-cost.ts'
import { createDeletionCosts } from '../../worker-runtime/controller/deletion-costs.ts'
import { createPods } from '../../worker-runtime/controller/pods.ts'
import { caOf } from '../support/cluster/certificates.ts'
import { startPod, type TestPod } from '../support/cluster/pod.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { reportLive } from '../support/live-worker.ts'

const COST = 'controller.kubernetes.io/pod-deletion-cost'
const WORKER = { 'app.kubernetes.io/name': 'smartqueue', 'app.kubernetes.io/component': 'worker' }

let database: TestDatabase
let pod: TestPod

before(async () => {
  database = await createTestDatabase()
  pod = await startPod(database)
})
after(async () => {
  await pod.stop()
  await database.drop()
})
beforeEach(async () => {
  await database.sql('truncate workers, scheduler_leader, autoscale_snapshots')
  pod.api.pods.clear()
  pod.api.requests.length = 0
})

/** A pod and the worker in it. */
const addWorker = async (name: string, report: Parameters<typeof reportLive>[1] = {}): Promise<void> => {
  pod.api.pods.set(name, { name, uid: `uid-of-${name}`, labels: WORKER })
  await reportLive(database.run, { workerId: `worker-in-${name}`, hostname: name, ...report })
}

const lead = (name: string) =>
  database.sql(
    `insert into scheduler_leader (worker_id, term, backend_pid) values ($1, 1, 1)
     on conflict (only_row) do update set worker_id = excluded.worker_id`,
    [`worker-in-${name}`],
  )

const costsNow = () =>
  Object.fromEntries([...pod.api.pods.values()].map(({ name, annotations }) => [name, annotations?.[COST]]))

const patches = () => pod.api.requests.filter((request) => request.startsWith('PATCH'))

/** Deletion costs on a clock of the test's own. */
const keepCosts = () => {
  const clock = { nowMs: 0 }
  const results: string[] = []
  const errors: string[] = []
  const costs = createDeletionCosts({
    run: database.run,
    pods: createPods({
      api: pod.parts.api,
      namespace: 'smartqueue',
      selector: pod.parts.config.SMARTQUEUE_POD_SELECTOR,
    }),
    logger: pod.parts.logger,
    now: () => clock.nowMs,
    onResult: (result) => void results.push(result),
    onError: (error) => void errors.push(error.message),
  })
  const lookAfter = (ms: number): Promise<number> => {
    clock.nowMs += ms
    return costs.look()
  }
  return { ...costs, lookAfter, results, errors }
}

test('the more a worker has to do, the later its pod goes, and one that drains goes first', () => {
  const host = { hostname: 'a', status: 'online', running: 0, leads: false } as const
  const inOrder = [
    costOf({ ...host, status: 'draining', running: 9, leads: true }),
    costOf(host),
    costOf({ ...host, leads: true }),
    costOf({ ...host, running: 1 }),
    costOf({ ...host, running: 1, leads: true }),
    costOf({ ...host, running: 2 }),
    costOf({ ...host, running: 4 }),
    costOf({ ...host, running: 1000 }),
  ]
  assert.deepEqual(
    inOrder.toSorted((a, b) => a - b),
    inOrder,
  )
  assert.equal(new Set(inOrder).size, inOrder.length)
  assert.equal(costOf(undefined), 0)
  assert.equal(costOf({ ...host, running: 8 }), costOf({ ...host, running: 15 }), 'coarse')
})

test('pods of busy, leading and draining workers are marked, and idle ones need no mark', async () => {
  await addWorker('idle')
  await addWorker('busy', { running: 5 })
  await addWorker('leading', { running: 1 })
  await addWorker('draining', { status: 'draining', running: 3 })
  await lead('leading')
  const { look, results } = keepCosts()
  await look()
  assert.deepEqual(costsNow(), { idle: undefined, busy: '300', leading: '110', draining: '-1000' })
  assert.deepEqual(results, ['patched', 'patched', 'patched'])
})

test('nothing is written when nothing has changed, neither by the same controller nor by the next', async () => {
  await addWorker('busy', { running: 5 })
  const first = keepCosts()
  await first.look()
  await first.lookAfter(60_000)
  await keepCosts().look()
  assert.equal(patches().length, 1)
})

test('a pod is written to every ten seconds at most', async () => {
  await addWorker('busy', { running: 1 })
  const { look, lookAfter } = keepCosts()
  await look()
  await addWorker('busy', { running: 8 })
  pod.api.pods.set('busy', {
    name: 'busy',
    uid: 'uid-of-busy',
    labels: WORKER,
    annotations: { [COST]: '100' },
  })
  await lookAfter(9_000)
  assert.equal(costsNow().busy, '100')
  await lookAfter(1_000)
  assert.equal(costsNow().busy, '400')
})

test('a pause between two jobs is not taken for idleness, half a minute is', async () => {
  await addWorker('busy', { running: 1 })
  const { look, lookAfter } = keepCosts()
  await look()
  await reportLive(database.run, { workerId: 'worker-in-busy', hostname: 'busy', running: 0 })
  await lookAfter(20_000)
  assert.equal(costsNow().busy, '100')
  await lookAfter(20_000)
  assert.equal(costsNow().busy, '0')
})

test('a worker that has fallen silent does not keep its pod', async () => {
  await addWorker('silent', { running: 5 })
  await database.sql(`update workers set last_seen = now() - interval '1 minute'`)
  pod.api.pods.set('silent', { name: 'silent', uid: 'u', labels: WORKER, annotations: { [COST]: '300' } })
  await keepCosts().look()
  assert.equal(costsNow().silent, '0')
})

test('only the newest worker of a pod that has started anew counts', async () => {
  await addWorker('again', { running: 9 })
  await reportLive(database.run, { workerId: 'newer', hostname: 'again', running: 1 })
  await keepCosts().look()
  assert.equal(costsNow().again, '100')
})

test('pods of others, and those that are being deleted, are left alone', async () => {
  await addWorker('leaving', { running: 1 })
  await addWorker('other', { running: 1 })
  const labels = { ...WORKER, 'app.kubernetes.io/component': 'controller' }
  pod.api.pods.set('other', { name: 'other', uid: 'u', labels })
  pod.api.pods.set('leaving', {
    name: 'leaving',
    uid: 'v',
    labels: WORKER,
    deletionTimestamp: '2026-01-01T00:00:00Z',
  })
  await keepCosts().look()
  assert.deepEqual(patches(), [])
})

test('a host that is named by the first 63 letters of its pod is found', async () => {
  const name = `smartqueue-worker-${'x'.repeat(44)}-abcde`
  await addWorker(name, { hostname: name.slice(0, 62), running: 1 })
  await keepCosts().look()
  assert.equal(costsNow()[name], '100')
})

test('more pods than fit on a page are all seen', async () => {
  for (let n = 0; n < 501; n++)
    pod.api.pods.set(`pod-${n}`, { name: `pod-${n}`, uid: `u-${n}`, labels: WORKER })
  await addWorker('last', { running: 1 })
  await keepCosts().look()
  assert.equal(costsNow().last, '100')
})

for (const status of [404, 409])
  test(`a pod that is gone when it is written to (${status}) is no failure`, async () => {
    await addWorker('a', { running: 1 })
    await addWorker('b', { running: 1 })
    pod.api.fail(/^PATCH .*\/a\?/, { status })
    const { look, results, errors } = keepCosts()
    await look()
    assert.deepEqual([costsNow(), results, errors], [{ a: undefined, b: '100' }, ['patched'], []])
  })

for (const status of [403, 422, 500])
  test(`a refusal with ${status} is told, and the next pod has its turn`, async () => {
    await addWorker('a', { running: 1 })
    await addWorker('b', { running: 1 })
    pod.api.fail(/^PATCH .*\/a\?/, { status })
    const { look, lookAfter, results, errors } = keepCosts()
    await look()
    assert.deepEqual([costsNow(), results], [{ a: undefined, b: '100' }, ['failed', 'patched']])
    assert.equal(errors[0], `PATCH /api/v1/namespaces/smartqueue/pods/a: ${status} as the test wants it`)
    await lookAfter(10_000)
    assert.equal(costsNow().a, '100', 'it is tried again')
  })

test('an API that asks for a pause gets it', async () => {
  await addWorker('a', { running: 1 })
  await addWorker('b', { running: 1 })
  pod.api.fail(/^PATCH/, { status: 429, headers: { 'retry-after': '7' } })
  const { look, errors } = keepCosts()
  assert.equal(await look(), 7_000)
  assert.deepEqual([patches().length, errors.length], [1, 1])
})

test('a new token is used as soon as it is in its file', async () => {
  await addWorker('busy', { running: 1 })
  pod.api.token = 'second-token'
  const { look } = keepCosts()
  await assert.rejects(look, /401 Unauthorized/)
  await pod.writeToken('second-token')
  await look()
  assert.equal(costsNow().busy, '100')
})

test('a pod without a token is told how to get one', async () => {
  const nowhere = createApiClient({ server: pod.api.url, serviceAccountFolder: '/nowhere' })
  await assert.rejects(nowhere.get('/api', z.object({})), /automountServiceAccountToken: true/)
})

test('an API that does not show a certificate of the cluster gets no token', async () => {
  const { serviceAccountFolder, api } = pod
  await writeFile(join(serviceAccountFolder, 'ca.crt'), caOf('other-ca'))
  const client = createApiClient({ server: api.url, serviceAccountFolder })
  await assert.rejects(client.get('/api', z.object({})), /certificate/)
  assert.deepEqual(api.requests, [])
  await client.close()
  await writeFile(join(serviceAccountFolder, 'ca.crt'), caOf('cluster-ca'))
})

test('an API that does not answer is given up on', async () => {
  const silent = createServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { serviceAccountFolder } = pod
  const server = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const client = createApiClient({ server, serviceAccountFolder, timeoutMs: 50 })
  await assert.rejects(client.get('/api', z.object({})), /timeout|aborted/i)
  await client.close()
  silent.close()
})
