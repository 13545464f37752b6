import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { type EtlInput, prepareEtl, runEtl, serve } from '../../support/etl.ts'
import { failsWith } from '../../support/fails-with.ts'

type Received = { method: string | undefined; headers: NodeJS.Dict<string | string[]>; body: string }
type Load = Partial<EtlInput['load'] & { to: 'http' }>

/** A server that keeps what it gets, and answers with the status that `statusOf` says for the nth request. */
const receive = async (t: TestContext, statusOf: (request: number) => number = () => 202) => {
  const received: Received[] = []
  const url = await serve(t, async (request, response) => {
    const { method, headers } = request
    received.push({ method, headers, body: await text(request) })
    response.writeHead(statusOf(received.length), { 'retry-after': '7' }).end('what it says')
  })
  return { received, url }
}

const payload = (url: string, count: number, load: Load = {}): EtlInput => ({
  extract: { from: 'inline', rows: Array.from({ length: count }, (_, n) => ({ n })) },
  load: { to: 'http', url, batch_size: 2, ...load },
})

const rowsOf = (received: readonly Received[]) => received.map(({ body }) => JSON.parse(body))

describe('rows are sent', () => {
  it('in batches, each with a key of its own', async (t) => {
    const { received, url } = await receive(t)
    const job = prepareEtl(t, payload(url, 5))
    assert.equal((await job.attempt()).rows_loaded, 5)
    assert.deepEqual(rowsOf(received), [[{ n: 0 }, { n: 1 }], [{ n: 2 }, { n: 3 }], [{ n: 4 }]])
    assert.deepEqual(
      received.map(({ headers }) => headers['idempotency-key']),
      [`${job.id}-1`, `${job.id}-2`, `${job.id}-3`],
    )
    assert.equal(received[0]?.headers['content-type'], 'application/json')
  })

  it('as lines of JSON, with another method and headers', async (t) => {
    const { received, url } = await receive(t)
    await runEtl(t, payload(url, 2, { method: 'PUT', format: 'ndjson', headers: { 'X-Key': 'k' } }))
    const [{ method, headers, body } = {} as Received] = received
    assert.deepEqual([method, body, headers['x-key']], ['PUT', '{"n":0}\n{"n":1}\n', 'k'])
    assert.equal(headers['content-type'], 'application/x-ndjson')
  })

  it('not at all if there are none', async (t) => {
    const { received, url } = await receive(t)
    assert.equal((await runEtl(t, payload(url, 0))).rows_loaded, 0)
    assert.deepEqual(received, [])
  })
})

describe('an answer', () => {
  it('that refuses ends the job, and shows itself', async (t) => {
    const { url } = await receive(t, () => 422)
    const refused = failsWith('http_status', true, /^422 from POST http.*: what it says$/)
    await assert.rejects(runEtl(t, payload(url, 1)), refused)
  })

  it('that puts off is heeded, and the next attempt begins with that batch', async (t) => {
    const { received, url } = await receive(t, (request) => (request === 2 ? 503 : 200))
    const job = prepareEtl(t, payload(url, 6))
    await assert.rejects(job.attempt(), { code: 'http_status', permanent: false, retryAfterSeconds: 7 })
    assert.equal((await job.attempt()).rows_loaded, 6)
    assert.deepEqual(
      rowsOf(received).map(([row]) => row.n),
      [0, 2, 2, 4],
    )
  })
})

it('a batch that may have arrived is sent once more, with the same key', async (t) => {
  const { received, url } = await receive(t)
  const job = prepareEtl(t, payload(url, 6))
  const dies = async () => Promise.reject(new Error('died'))
  await assert.rejects(job.attempt({ checkpoint: dies }), /died/)
  await job.attempt()
  const keys = received.map(({ headers }) => headers['idempotency-key'])
  assert.deepEqual(
    keys,
    [1, 1, 2, 3].map((batch) => `${job.id}-${batch}`),
  )
  await job.attempt()
  assert.equal(received.length, 4, 'an attempt after the last batch sends nothing')
})

it('a source that has changed is not mixed with what was sent', async (t) => {
  let requests = 0
  const source = await serve(t, (_request, response) => {
    requests += 1
    response.end(requests === 1 ? 'n\n1\n2\n3\n4\n' : 'n\n1\n0\n3\n4\n')
  })
  const { received, url } = await receive(t, (request) => (request === 2 ? 500 : 200))
  const job = prepareEtl(t, {
    extract: { from: 'http', url: source, format: 'csv' },
    load: { to: 'http', url, batch_size: 2 },
  })
  await assert.rejects(job.attempt(), { code: 'http_status', permanent: false })
  await assert.rejects(job.attempt(), failsWith('source_changed', true, /submit a new job/))
  assert.equal(received.length, 2)
})
