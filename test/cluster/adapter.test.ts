import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { createAdapter } from '../../worker-runtime/adapter/adapter.ts'
import { quantityOf } from '../../worker-runtime/adapter/external-metrics.ts'
import { createTlsServer } from '../../worker-runtime/adapter/tls-server.ts'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { type Asked, ask } from '../support/cluster/aggregator.ts'
import { caOf, certificateOf } from '../support/cluster/certificates.ts'
import { startPod, storeSnapshot, type TestPod } from '../support/cluster/pod.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitFor } from '../support/wait-for.ts'

const GROUP = '/apis/external.metrics.k8s.io/v1beta1'
const BACKLOG = `${GROUP}/namespaces/smartqueue/smartqueue_backlog_workers`

let database: TestDatabase

before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(() => database.sql('truncate autoscale_snapshots'))

type Running = { pod: TestPod; adapter: ReturnType<typeof createAdapter>; asked: Asked }

/** An adapter of its own, so that no test meets the answer that another was given a moment ago. */
const withAdapter = async (work: (running: Running) => Promise<void>, prepare = (_: TestPod): void => {}) => {
  const pod = await startPod(database)
  prepare(pod)
  const adapter = createAdapter(pod.parts)
  await adapter.start()
  try {
    const port = await waitFor('the API', () => adapter.ports().api)
    await work({ pod, adapter, asked: (path, options) => ask(port, path, options) })
  } finally {
    await adapter.stop()
    await pod.stop()
  }
}

test('a HorizontalPodAutoscaler gets the workers that each kind of work asks for', async () => {
  await storeSnapshot(database, { queued: 480, running: 374.4, arriving: 2, forecast: 960 })
  const [row] = await database.sql<{ taken_at: Date }>('select taken_at from autoscale_snapshots')
  await withAdapter(async ({ asked }) => {
    const { status, body, type } = await asked(`${BACKLOG}?labelSelector=`)
    assert.deepEqual([status, type], [200, 'application/json'])
    const timestamp = row?.taken_at.toISOString().replace(/\.\d+/, '')
    assert.deepEqual(body, {
      kind: 'ExternalMetricValueList',
      apiVersion: 'external.metrics.k8s.io/v1beta1',
      metadata: {},
      items: [{ metricName: 'smartqueue_backlog_workers', metricLabels: {}, timestamp, value: '1780m' }],
    })
    const askedFor = async (metric: string) => {
      const { body } = await asked(`${GROUP}/namespaces/smartqueue/${metric}`)
      return (body as { items: { value: string }[] }).items[0]?.value
    }
    assert.equal(await askedFor('smartqueue_arriving_workers'), '1250m')
    assert.equal(await askedFor('smartqueue_forecast_workers'), '2000m')
  })
})

test('quantities are whole thousandths, however small or large', () => {
  assert.deepEqual([0, 0.0004, 1 / 3, 1.78, 5, 1e300].map(quantityOf), [
    '0m',
    '0m',
    '333m',
    '1780m',
    '5000m',
    '9007199254740991m',
  ])
})

test('the API tells of itself what kubectl and the aggregator ask', async () => {
  await withAdapter(async ({ asked }) => {
    const resources = await asked(GROUP)
    const list = resources.body as { resources: { name: string }[] }
    assert.deepEqual(
      list.resources.map(({ name }) => name),
      ['smartqueue_backlog_workers', 'smartqueue_arriving_workers', 'smartqueue_forecast_workers'],
    )
    assert.deepEqual(list.resources[0], {
      name: 'smartqueue_backlog_workers',
      singularName: '',
      namespaced: true,
      kind: 'ExternalMetricValueList',
      verbs: ['get'],
    })
    const version = { groupVersion: 'external.metrics.k8s.io/v1beta1', version: 'v1beta1' }
    const group = { name: 'external.metrics.k8s.io', versions: [version], preferredVersion: version }
    const kindOf = async (path: string) => (await asked(path)).body
    assert.deepEqual(await kindOf('/apis/external.metrics.k8s.io'), {
      kind: 'APIGroup',
      apiVersion: 'v1',
      ...group,
    })
    assert.deepEqual(await kindOf('/apis'), { kind: 'APIGroupList', apiVersion: 'v1', groups: [group] })
  })
})

test('the aggregator is told that there is no aggregated discovery, and asks for the lists', async () => {
  const documents = ['v2', 'v2beta1'].map(
    (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
  )
  await withAdapter(async ({ asked }) => {
    const refused = await asked('/apis', { headers: { accept: documents.join() } })
    assert.deepEqual([refused.status, (refused.body as { reason: string }).reason], [406, 'NotAcceptable'])
    const either = await asked('/apis', { headers: { accept: [...documents, 'application/json'].join() } })
    assert.deepEqual([either.status, (either.body as { kind: string }).kind], [200, 'APIGroupList'])
  })
})

test('what is not there is a Status that says so', async () => {
  await storeSnapshot(database)
  await withAdapter(async ({ asked }) => {
    const missing = [
      '/openapi/v2',
      '/openapi/v3',
      '/',
      '//',
      `${GROUP}/namespaces/smartqueue/other`,
      `${GROUP}/namespaces/smartqueue/toString`,
      `${GROUP}/namespaces/elsewhere/smartqueue_backlog_workers`,
    ]
    for (const path of missing) {
      const { status, body } = await asked(path)
      assert.deepEqual([status, (body as { reason: string }).reason], [404, 'NotFound'], path)
    }
    const labelled = await asked(`${BACKLOG}?labelSelector=queue%3Dmail`)
    assert.equal(labelled.status, 400)
    assert.deepEqual(labelled.body, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'smartqueue_backlog_workers has no labels: leave the selector of the metric out.',
      reason: 'BadRequest',
      code: 400,
    })
    for (const method of ['POST', 'DELETE', 'PUT', 'PATCH'])
      assert.equal((await asked(BACKLOG, { method, sent: '{}' })).status, 405)
  })
})

test('without a fresh snapshot the answer is 503, and says why; the API stays available', async () => {
  await storeSnapshot(database, { ageSeconds: 45 })
  await withAdapter(async ({ asked, adapter }) => {
    const { status, body } = await asked(BACKLOG)
    assert.equal(status, 503)
    const { kind, reason, message } = body as Record<string, string>
    assert.deepEqual([kind, reason], ['Status', 'ServiceUnavailable'])
    assert.match(message ?? '', /snapshot of the work is 4\d s old/)
    assert.equal((await asked(GROUP)).status, 200)
    const metrics = await (await fetch(`http://127.0.0.1:${adapter.ports().status}/metrics`)).text()
    assert.match(metrics, /^smartqueue_adapter_requests_total\{code="503"\} 1$/m)
    assert.match(metrics, /^smartqueue_adapter_database_up 1$/m)
  })
})

test('without the database the answer is 503, and the API stays available', async () => {
  const away = (pod: TestPod) => {
    pod.parts.config.DATABASE_URL = 'postgres://nobody@127.0.0.1:1/none'
  }
  await withAdapter(async ({ asked, adapter }) => {
    const { status, body } = await asked(BACKLOG)
    assert.deepEqual([status, (body as { message: string }).message], [503, 'The database does not answer.'])
    assert.equal((await asked(GROUP)).status, 200)
    const status9464 = `http://127.0.0.1:${adapter.ports().status}`
    assert.equal((await fetch(`${status9464}/readyz`)).status, 200)
    assert.match(await (await fetch(`${status9464}/metrics`)).text(), /^smartqueue_adapter_database_up 0$/m)
  }, away)
})

test('only API servers of the cluster are answered', async () => {
  await storeSnapshot(database)
  await withAdapter(async ({ asked }) => {
    assert.equal((await asked(BACKLOG)).status, 200)
    await assert.rejects(asked(BACKLOG, { as: undefined }), 'without a certificate')
    await assert.rejects(asked(BACKLOG, { as: 'impostor' }), 'with one of another CA')
    const token = { authorization: 'Bearer of-a-cluster-admin', 'x-remote-user': 'system:admin' }
    await assert.rejects(asked(BACKLOG, { as: undefined, headers: token }), 'with a token')
    for (const path of [BACKLOG, GROUP, '/nowhere']) {
      const { status, body } = await asked(path, { as: 'stranger', headers: token })
      assert.deepEqual([status, (body as { reason: string }).reason], [403, 'Forbidden'], path)
    }
    await assert.rejects(asked(BACKLOG, { maxVersion: 'TLSv1.1' }), /protocol version/)
  })
})

test('a cluster that names no clients trusts all of its CA', async () => {
  await storeSnapshot(database)
  const anyName = (pod: TestPod) => {
    pod.api.authentication['requestheader-allowed-names'] = '[]'
  }
  await withAdapter(async ({ asked }) => {
    assert.equal((await asked(BACKLOG, { as: 'stranger' })).status, 200)
    await assert.rejects(asked(BACKLOG, { as: 'impostor' }))
  }, anyName)
})

test('another CA of the cluster is trusted from then on, and the old one is not, not on open connections either', async () => {
  await storeSnapshot(database)
  await withAdapter(async ({ asked, adapter, pod }) => {
    const agent = new Agent({ keepAlive: true, maxCachedSessions: 10, maxSockets: 1 })
    assert.equal((await asked(BACKLOG, { agent })).status, 200)
    pod.api.authentication['requestheader-client-ca-file'] = caOf('other-ca')
    await adapter.refresh()
    await assert.rejects(asked(BACKLOG, { agent }), 'neither its connection nor its session lives on')
    assert.equal((await asked(BACKLOG, { as: 'impostor' })).status, 200)
    agent.destroy()
  })
})

test('another list of names counts at once', async () => {
  await storeSnapshot(database)
  await withAdapter(async ({ asked, adapter, pod }) => {
    pod.api.authentication['requestheader-allowed-names'] = '["somebody-else"]'
    await adapter.refresh()
    assert.equal((await asked(BACKLOG)).status, 403)
    assert.equal((await asked(BACKLOG, { as: 'stranger' })).status, 200)
  })
})

test('a renewed certificate is shown; a half written one changes nothing', async () => {
  await withAdapter(async ({ asked, adapter, pod }) => {
    const shown = async () => (await asked(GROUP)).serverName
    assert.equal(await shown(), 'SmartQueue test server')
    await writeFile(join(pod.tlsFolder, 'tls.crt'), certificateOf('renewed-server').cert)
    await assert.rejects(adapter.refresh(), /key values mismatch/)
    assert.equal(await shown(), 'SmartQueue test server')
    await pod.writeCertificate('renewed-server')
    await adapter.refresh()
    assert.equal(await shown(), 'SmartQueue renewed test server')
  })
})

test('a ConfigMap that cannot be read any more leaves all as it was', async () => {
  await withAdapter(async ({ asked, adapter, pod }) => {
    pod.api.fail(/configmaps/, { status: 403 })
    await assert.rejects(adapter.refresh(), /extension-apiserver-authentication: 403/)
    pod.api.authentication['requestheader-client-ca-file'] = 'nothing of use'
    await assert.rejects(adapter.refresh(), /holds no certificate/)
    assert.equal((await asked(GROUP)).status, 200)
    await assert.rejects(asked(GROUP, { as: undefined }))
  })
})

test('until it knows whom to trust it answers nobody and is not ready', async () => {
  const pod = await startPod(database)
  delete pod.api.authentication['requestheader-client-ca-file']
  const adapter = createAdapter(pod.parts)
  await adapter.start()
  const ready = async () => (await fetch(`http://127.0.0.1:${adapter.ports().status}/readyz`)).status
  await waitFor('the fault', () => pod.log.some(({ error }) => /no aggregation layer/.test(String(error))))
  assert.deepEqual([await ready(), adapter.ports().api], [503, undefined])
  pod.api.authentication['requestheader-client-ca-file'] = caOf('front-proxy-ca')
  await waitFor('it to listen', async () => (await ready()) === 200)
  await adapter.stop()
  await pod.stop()
})

test('what was asked before the end is answered, on a connection that closes', async () => {
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ status: number; body: object }>()
  const fail = (error: Error) => assert.fail(error)
  const server = createTlsServer({
    port: 0,
    context: { ...certificateOf('server'), ca: caOf('front-proxy-ca') },
    answer: () => {
      isAsked()
      return answered
    },
    onRefused: fail,
    onError: fail,
  })
  await server.start()
  const agent = new Agent({ keepAlive: true })
  const port = server.port()
  const waiting = ask(port, GROUP, { agent })
  await asked
  const stopped = server.stop()
  await assert.rejects(ask(port, GROUP), /ECONNREFUSED/)
  answer({ status: 200, body: {} })
  assert.equal((await waiting).status, 200)
  await stopped
  agent.destroy()
})

test('the program starts in a pod, answers and ends on SIGTERM', async () => {
  await storeSnapshot(database)
  const pod = await startPod(database)
  const [port, statusPort] = [await freePort(), await freePort()]
  const api = new URL(pod.api.url)
  const child = fork('worker-runtime/adapter/main.ts', ['--service-account', pod.serviceAccountFolder], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: asLogin(database.url, 'functions'),
      SMARTQUEUE_METRICS_PORT: String(statusPort),
      SMARTQUEUE_ADAPTER_PORT: String(port),
      SMARTQUEUE_ADAPTER_TLS_DIR: pod.tlsFolder,
      KUBERNETES_SERVICE_HOST: api.hostname,
      KUBERNETES_SERVICE_PORT: api.port,
    },
  })
  const { status } = await waitFor('an answer', () => ask(port, BACKLOG))
  assert.equal(status, 200)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
  await pod.stop()
})
