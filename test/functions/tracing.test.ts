import assert from 'node:assert/strict'
import { afterEach, mock, test } from 'node:test'
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-node'
import { parseBindings } from '../../functions/bindings.ts'
import { createExporter } from '../../functions/tracing/exporter.ts'
import { isEndpoint, isRatio, parsePairs, tracesUrl } from '../../functions/tracing/otel-settings.ts'
import { type FinishedSpan, SERVER } from '../../functions/tracing/otlp.ts'
import { beginTrace, passOn } from '../../functions/tracing/request-trace.ts'
import { createSampler } from '../../functions/tracing/sampler.ts'
import {
  formatTraceparent,
  newSpanId,
  newTraceId,
  parseTraceparent,
} from '../../functions/tracing/traceparent.ts'
import { startOtlpReceiver } from '../support/otlp-receiver.ts'

afterEach(() => mock.restoreAll())

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN_ID = '00f067aa0ba902b7'

test('a traceparent is read as W3C Trace Context writes it', () => {
  const context = { traceId: TRACE_ID, spanId: SPAN_ID, sampled: true }
  const text = `00-${TRACE_ID}-${SPAN_ID}-01`
  assert.deepEqual(parseTraceparent(text), context)
  assert.equal(formatTraceparent(context), text)
  assert.equal(parseTraceparent(text.replace(/01$/, '00'))?.sampled, false)
  assert.equal(parseTraceparent(text.replace(/01$/, '03'))?.sampled, true, 'other flags are no matter')
  assert.equal(parseTraceparent(text.replace(/01$/, '02'))?.sampled, false)
})

const BAD = {
  nothing: undefined,
  'an empty one': '',
  'another version': `01-${TRACE_ID}-${SPAN_ID}-01`,
  'a forbidden version': `ff-${TRACE_ID}-${SPAN_ID}-01`,
  'upper case': `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
  'no trace': `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
  'no span': `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
  'more behind it': `00-${TRACE_ID}-${SPAN_ID}-01-x`,
  'too few flags': `00-${TRACE_ID}-${SPAN_ID}-1`,
  'a line break': `00-${TRACE_ID}-${SPAN_ID}-01\n`,
}
for (const [what, text] of Object.entries(BAD)) {
  test(`${what} is no traceparent`, () => {
    assert.equal(parseTraceparent(text), undefined)
    assert.equal(passOn(text).traceparent, null)
  })
}

test('ids are as long as they must be, and new', () => {
  const ids = Array.from({ length: 100 }, () =>
    formatTraceparent({ traceId: newTraceId(), spanId: newSpanId(), sampled: true }),
  )
  assert.ok(ids.every(parseTraceparent))
  assert.equal(new Set(ids).size, 100)
})

test('by ratio both runtimes sample the same traces', () => {
  const traces = Array.from({ length: 2_000 }, newTraceId)
  for (const ratio of [0, 0.001, 0.25, 0.5, 0.999, 1]) {
    const official = new TraceIdRatioBasedSampler(ratio)
    const own = createSampler('traceidratio', ratio)
    for (const traceId of ['f'.repeat(32), `${'0'.repeat(31)}1`, ...traces]) {
      const { decision } = official.shouldSample(ROOT_CONTEXT, traceId)
      assert.equal(
        own(traceId, undefined),
        decision === SamplingDecision.RECORD_AND_SAMPLED,
        `${ratio} ${traceId}`,
      )
    }
  }
})

test('the parent decides where the sampler says so, and nowhere else', () => {
  const parent = (sampled: boolean) => ({ traceId: TRACE_ID, spanId: SPAN_ID, sampled })
  const decide = (name: Parameters<typeof createSampler>[0], ratio = 1) =>
    [undefined, parent(true), parent(false)].map((from) => createSampler(name, ratio)(TRACE_ID, from))
  assert.deepEqual(decide('always_on'), [true, true, true])
  assert.deepEqual(decide('always_off'), [false, false, false])
  assert.deepEqual(decide('traceidratio', 0), [false, false, false])
  assert.deepEqual(decide('parentbased_always_on'), [true, true, false])
  assert.deepEqual(decide('parentbased_always_off'), [false, true, false])
  assert.deepEqual(decide('parentbased_traceidratio', 0), [false, true, false])
  assert.deepEqual(decide('parentbased_traceidratio', 1), [true, true, false])
})

test('what is not sampled says so to whoever goes on', () => {
  const incoming = `00-${TRACE_ID}-${SPAN_ID}-01`
  const never = () => false
  assert.equal(beginTrace(incoming, never).trace.traceparent, `00-${TRACE_ID}-${SPAN_ID}-00`)
  assert.match(beginTrace(undefined, never).trace.traceparent ?? '', /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
})

test('a part that throws is a failed span, and throws all the same', async () => {
  const { trace, end } = beginTrace(undefined, () => true)
  await assert.rejects(
    trace.span({ name: 'insert', kind: SERVER }, async () => {
      throw new TypeError('with a secret')
    }),
    TypeError,
  )
  const [server, insert] = end?.('POST /jobs', {}, undefined) ?? []
  assert.ok(server && insert)
  assert.deepEqual([insert.parentSpanId, insert.error], [server.spanId, 'TypeError'])
})

test('settings are read as OpenTelemetry writes them', () => {
  assert.equal(tracesUrl('http://c:4318/'), 'http://c:4318/v1/traces')
  assert.equal(tracesUrl('https://c/otlp'), 'https://c/otlp/v1/traces')
  assert.deepEqual(parsePairs('authorization=Bearer%20x=, a = b ,'), { authorization: 'Bearer x=', a: 'b' })
  assert.deepEqual(parsePairs(''), {})
  for (const bad of ['a', '=b', 'a=%zz', 'a=%0d%0ab: c', 'ä=b']) assert.equal(parsePairs(bad), undefined, bad)
  assert.deepEqual(['0', '1', '0.5', '.25', '1.0'].map(isRatio), Array(5).fill(true))
  assert.deepEqual(['', '1.5', '-1', 'x', '2', '0x1'].map(isRatio), Array(6).fill(false))
  assert.deepEqual(
    ['http://c', 'ftp://c', 'c:4318', 'https://c/v1/traces/', 'http://u:p@c', 'http://c?q'].map(isEndpoint),
    [true, ...Array(5).fill(false)],
  )
})

test('a bad binding refuses all requests, and is named', () => {
  const bad = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'top secret',
    OTEL_TRACES_SAMPLER: 'some',
    OTEL_TRACES_SAMPLER_ARG: '2',
    SMARTQUEUE_REGISTRATION: 'Open',
    SMARTQUEUE_ORGS_PER_ACCOUNT: '0',
    SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'x-forwarded-for, x-real-ip',
  }
  for (const [name, value] of Object.entries(bad)) {
    assert.throws(
      () => parseBindings({ [name]: value }),
      ({ message }: Error) => message.includes(`${name}: `) && !message.includes('top secret'),
    )
  }
})

const span = (): FinishedSpan => ({
  traceId: newTraceId(),
  spanId: newSpanId(),
  parentSpanId: undefined,
  name: 'GET',
  kind: SERVER,
  startMs: 1,
  endMs: 2,
  attributes: { 'http.response.status_code': 200 },
  error: undefined,
})

/** Exports as a request does, which goes on until all that it holds is done. */
const exporterTo = (url: string) => {
  const held: Promise<unknown>[] = []
  const exporter = createExporter({ url, headers: {}, resource: { 'service.name': 'test' } })
  return {
    send: (count: number) => exporter.send(Array.from({ length: count }, span), (work) => held.push(work)),
    held,
    settled: async () => {
      while (held.length > 0) await held.shift()
    },
  }
}

const quietLog = (): string[] => {
  const lines: string[] = []
  mock.method(console, 'warn', (line: string) => void lines.push(line))
  return lines
}

test('spans of requests at the same time go together', async () => {
  const receiver = await startOtlpReceiver()
  const { send, held, settled } = exporterTo(tracesUrl(receiver.url))
  for (let n = 0; n < 5; n++) send(2)
  assert.equal(held.length, 1, 'one request does it for all')
  await settled()
  assert.equal(receiver.spans.length, 10)
  assert.deepEqual(receiver.spans[0]?.attributes, { 'http.response.status_code': 200 })
  await receiver.stop()
})

test('a receiver that is gone costs its spans and one line, and is found again', async () => {
  const lines = quietLog()
  const receiver = await startOtlpReceiver()
  const { send, settled } = exporterTo(tracesUrl(receiver.url))
  const fetched = mock.method(globalThis, 'fetch', async () => new Response(null, { status: 503 }))
  for (let n = 0; n < 3; n++) {
    send(1)
    await settled()
  }
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /spans could not be exported.*503/)
  fetched.mock.restore()
  send(1)
  await settled()
  assert.equal(receiver.spans.length, 1)
  assert.match(lines[1] ?? '', /"spans were dropped","spans":3/)
  await receiver.stop()
})

test('while a receiver is slow only so many spans wait', async () => {
  quietLog()
  const sent: number[] = []
  mock.method(globalThis, 'fetch', async (_: string, { body }: { body: string }) => {
    sent.push(JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length)
    return new Response()
  })
  const { send, held, settled } = exporterTo('http://127.0.0.1:9')
  for (let n = 0; n < 30; n++) send(100)
  assert.equal(held.length, 1)
  await settled()
  assert.deepEqual(sent, [512, 512, 512, 512])
})
