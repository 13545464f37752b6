import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { after, before, beforeEach, test } from 'node:test'
import { createController } from '../../worker-runtime/controller/controller.ts'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { startBreakableProxy } from '../support/breakable-proxy.ts'
import { startPod, storeSnapshot, type TestPod } from '../support/cluster/pod.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { reportLive } from '../support/live-worker.ts'
import { waitFor } from '../support/wait-for.ts'

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
  await database.sql('truncate workers, autoscale_snapshots')
  pod.api.pods.clear()
})

/** A pod whose worker runs a job. */
const addBusyPod = async (): Promise<void> => {
  pod.api.pods.set('busy', { name: 'busy', uid: 'uid-of-busy', labels: WORKER })
  await reportLive(database.run, { hostname: 'busy', running: 1 })
}

const untilMarked = () => waitFor('the cost', () => pod.api.pods.get('busy')?.annotations?.[COST] === '100')

test('a login of the functions may read all that is needed', async () => {
  const controller = createController(pod.parts)
  await addBusyPod()
  await controller.start()
  await untilMarked()
  await controller.stop()
})

const ask = async (port: number, path = '/autoscale') => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    text: await response.text(),
  }
}

test('/autoscale is that of the newest snapshot', async () => {
  await storeSnapshot(database, { queued: 480, running: 240, arriving: 4, forecast: 960 })
  const controller = createController(pod.parts)
  await controller.start()
  const { status, type, text } = await ask(controller.port())
  assert.deepEqual([status, type], [200, 'application/json'])
  const { desired, needed, T } = JSON.parse(text)
  assert.deepEqual({ desired, needed, T }, { desired: 2, needed: { B: 1.5, R: 1.5, F: 2 }, T: 480 })
  const metrics = await ask(controller.port(), '/metrics')
  assert.match(metrics.text, /^smartqueue_controller_database_up 1$/m)
  assert.match(metrics.text, /^smartqueue_controller_snapshot_age_seconds 0?\.?\d+/m)
  assert.match(metrics.text, /^smartqueue_controller_deletion_costs_total\{result="failed"\} 0$/m)
  await controller.stop()
})

const unusable: [string, () => Promise<unknown>, RegExp][] = [
  ['without a snapshot', async () => {}, /no worker has led/],
  ['with one that is old', () => storeSnapshot(database, { ageSeconds: 31 }), /3\d s old/],
]
for (const [when, prepare, detail] of unusable)
  test(`/autoscale is 503 ${when}, and says so`, async () => {
    await prepare()
    const controller = createController(pod.parts)
    await controller.start()
    const { status, type, text } = await ask(controller.port())
    assert.deepEqual([status, type], [503, 'application/problem+json'])
    const problem = JSON.parse(text)
    assert.deepEqual([problem.type, problem.status], ['/docs#problem-autoscale-unknown', 503])
    assert.match(problem.detail, detail)
    await controller.stop()
  })

test('/autoscale is 503 without the database, which it lives without and comes back to', async () => {
  await storeSnapshot(database)
  const proxy = await startBreakableProxy(database.url)
  const url = new URL(asLogin(database.url, 'functions'))
  url.port = new URL(proxy.url).port
  const config = { ...pod.parts.config, DATABASE_URL: url.href }
  const controller = createController({ ...pod.parts, config })
  proxy.break()
  await controller.start()
  const port = controller.port()
  assert.equal((await ask(port, '/readyz')).status, 503)
  const { status, text } = await ask(port)
  assert.deepEqual([status, JSON.parse(text).type], [503, '/docs#problem-database-unavailable'])
  assert.match((await ask(port, '/metrics')).text, /^smartqueue_controller_database_up 0$/m)
  assert.equal((await ask(port, '/healthz')).status, 200)
  proxy.mend()
  await waitFor('the database', async () => (await ask(port, '/readyz')).status === 200)
  await waitFor('the snapshot', async () => (await ask(port)).status === 200)
  await controller.stop()
  proxy.stop()
})

test('/autoscale is 503 with a login that could see more than it should, and the log says what to do', async () => {
  await storeSnapshot(database)
  const config = { ...pod.parts.config, DATABASE_URL: asLogin(database.url, 'workers') }
  const controller = createController({ ...pod.parts, config })
  await controller.start()
  assert.equal((await ask(controller.port())).status, 503)
  assert.equal((await ask(controller.port(), '/readyz')).status, 503)
  await controller.stop()
  const said = pod.log.map(({ error }) => String(error)).join('\n')
  assert.match(said, /DATABASE_URL: .*npm run admin -- database-login functions/)
})

test('the program starts in a pod, keeps costs and ends on SIGTERM', async () => {
  await storeSnapshot(database)
  await addBusyPod()
  const port = await freePort()
  const api = new URL(pod.api.url)
  const child = fork('worker-runtime/controller/main.ts', ['--service-account', pod.serviceAccountFolder], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: asLogin(database.url, 'functions'),
      SMARTQUEUE_METRICS_PORT: String(port),
      KUBERNETES_SERVICE_HOST: api.hostname,
      KUBERNETES_SERVICE_PORT: api.port,
    },
  })
  await untilMarked()
  assert.equal((await fetch(`http://127.0.0.1:${port}/autoscale`)).status, 200)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})
