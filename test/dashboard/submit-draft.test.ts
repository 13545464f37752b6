import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseObject, prettify } from '../../functions/dashboard/ui/json-text.ts'
import { EMPTY_DRAFT, toRequest } from '../../functions/dashboard/views/jobs/submit/draft.ts'
import { examplePayload } from '../../functions/dashboard/views/jobs/submit/example-payload.ts'
import { newJob } from '../../functions/jobs/new-job.ts'
import { createHandlers } from '../../worker-runtime/handlers/index.ts'
import { describePayload } from '../../worker-runtime/payload-schema.ts'

const errorOf = (text: string): string => {
  const parsed = parseObject(text)
  return parsed.ok ? '' : parsed.error
}

test('JSON that is wrong is told with its line', () => {
  assert.match(errorOf('{\n  "a": 1\n  "b": 2\n}'), /line 3/)
  assert.match(errorOf('{\n  "a": 1,\n  "b": tru,\n  "c": 3\n}'), /line 3: Unexpected token ','$/)
  assert.match(errorOf('{\n  "a": [1,\n'), /line 2: Unexpected end/)
  assert.match(errorOf('  '), /empty/)
  assert.match(errorOf('[1]'), /object/)
})

test('prettify orders what is right, and leaves what is wrong as it is', () => {
  assert.equal(prettify('{"a":1}'), '{\n  "a": 1\n}')
  assert.equal(prettify('{"a":'), '{"a":')
})

test('what was typed becomes a request that the API takes', () => {
  const { request } = toRequest({
    ...EMPTY_DRAFT,
    name: ' nightly ',
    type: 'http',
    payload: '{"url": "https://example.com/"}',
    tags: 'a, b  a',
    deadline: '2030-01-01T10:00',
    timeoutSeconds: '30',
    maxAttempts: '5',
    dependsOn: '01a1eb00-0000-7000-8000-000000000001',
    fairnessKey: ' customer 42 ',
  })
  const job = newJob.parse(request)
  assert.deepEqual(
    [job.name, job.tags, job.timeout_seconds, job.retry.max_attempts, job.depends_on.length],
    ['nightly', ['a', 'b'], 30, 5, 1],
  )
  assert.equal(job.fairness_key, 'customer 42')
  assert.equal(new Date(job.deadline ?? 0).getTime(), new Date('2030-01-01T10:00').getTime())
})

test('without a name, a type or a payload there is no request yet', () => {
  const whole = { ...EMPTY_DRAFT, name: 'a', type: 'http' }
  assert.ok(toRequest(whole).request)
  assert.equal(toRequest({ ...whole, name: ' ' }).request, undefined)
  assert.equal(toRequest({ ...whole, type: '' }).request, undefined)
  assert.equal(toRequest({ ...whole, payload: '{' }).request, undefined)
})

test('the example of a type is a payload that its handler takes', () => {
  for (const { type, schema } of createHandlers({ shellAllow: ['/bin/echo'] })) {
    const example = examplePayload(describePayload(schema))
    const { error } = schema.safeParse(example)
    assert.equal(error, undefined, `${type}: ${JSON.stringify(example)}`)
  }
})
