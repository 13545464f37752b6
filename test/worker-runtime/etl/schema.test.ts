import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { schema } from '../../../worker-runtime/handlers/etl/schema.ts'
import { describePayload } from '../../../worker-runtime/payload-schema.ts'

const atSubmission = z.fromJSONSchema(JSON.parse(JSON.stringify(describePayload(schema))))

const inline = { from: 'inline', rows: [{ a: 1 }] }
const http = { from: 'http', url: 'https://example.com/a.csv', format: 'csv' }
const query = { from: 'postgres', connection: 'shop', query: 'select 1' }
const table = { to: 'postgres', connection: 'shop', table: 'orders' }
const result = { to: 'result' }

const step = (...transform: unknown[]) => ({ extract: inline, transform, load: result })

/** a payload, and what is said about it, with the place */
const refusals: [unknown, string][] = [
  [{ load: result }, 'extract Invalid input'],
  [{ extract: { from: 'ftp' }, load: result }, 'extract.from Invalid discriminator value'],
  [
    { extract: { ...http, rows_at: '$.a' }, load: result },
    'extract.rows_at does not go with the format "csv"',
  ],
  [
    { extract: { ...http, format: 'json', csv: {} }, load: result },
    'extract.csv does not go with the format "json"',
  ],
  [{ extract: { ...http, csv: { quote: ',' } }, load: result }, 'extract.csv.quote is the delimiter too'],
  [
    { extract: { ...http, encoding: 'klingon' }, load: result },
    'extract.encoding is not the name of an encoding',
  ],
  [
    { extract: { ...http, url: 'ftp://example.com' }, load: result },
    'extract.url is not an http: or https: URL',
  ],
  [step({}), 'transform.0 needs exactly one of filter, cast'],
  [step({ limit: 1 }, { limit: 1, drop: ['a'] }), 'transform.1 needs exactly one of filter, cast'],
  [step({ filter: { path: 'a', eq: 1 } }), 'transform.0.filter.path must be a path such as $.action'],
  [
    step({ filter: { path: '$headers.a', eq: 1 } }),
    'transform.0.filter.path must begin with $, not with $headers',
  ],
  [step({ cast: { a: 'int' } }), 'transform.0.cast.a Invalid option'],
  [
    step({ derive: { a: { b: '{{ $.x' } } }),
    'transform.0.derive.a.b has a {{ at character 1 that begins no insertion',
  ],
  [step({ sort: [{ by: 'a' }] }), 'transform.0.sort.0.by is not a path such as "$.amount"'],
  [
    step({ group: { aggregate: { n: { sum: '$.a', count: true } } } }),
    'transform.0.group.aggregate.n needs exactly one of count, sum, avg, min and max',
  ],
  [{ extract: inline, load: { ...table, mode: 'upsert' } }, 'load.key is needed to upsert'],
  [{ extract: inline, load: { ...table, key: ['id'] } }, 'load.key goes with the mode "upsert"'],
  [{ extract: inline, load: { ...table, table: 'a.b.c' } }, 'load.table is not the name of a table'],
  [
    { extract: query, load: { ...table, atomic: false } },
    'load.atomic rows of a query are appended in one transaction',
  ],
  [
    {
      extract: inline,
      load: { to: 'http', url: 'https://example.com', headers: { 'Idempotency-Key': 'x' } },
    },
    'load.headers.idempotency-key is set by the job',
  ],
  [{ extract: inline, load: result, max_bad_rows: -1 }, 'max_bad_rows Too small'],
]

describe('a payload is refused with its place:', () => {
  for (const [payload, said] of refusals) {
    it(said, () => {
      const { error } = schema.safeParse(payload)
      const issues = (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`)
      assert.ok(issues[0]?.startsWith(said), issues.join('\n'))
    })
  }
})

describe('the payloads of docs/etl.md', () => {
  const page = readFileSync('docs/etl.md', 'utf8')
  const blocks = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json ?? ''))
  const jobs = blocks.filter((block) => 'type' in block)

  it('are there for each source and each target', () => {
    const named = (part: 'extract' | 'load', key: string) =>
      new Set(jobs.map(({ payload }) => payload[part][key]))
    assert.deepEqual(named('extract', 'from'), new Set(['inline', 'http', 'postgres']))
    assert.deepEqual(named('extract', 'format'), new Set(['csv', 'ndjson', 'json', undefined]))
    assert.deepEqual(named('load', 'to'), new Set(['postgres', 'http', 'result']))
  })

  for (const { name, type, payload } of jobs) {
    it(`are taken, at submission and by the handler: ${name}`, () => {
      assert.equal(type, 'etl')
      assert.deepEqual(schema.safeParse(payload).error, undefined)
      assert.deepEqual(atSubmission.safeParse(payload).error, undefined)
    })
  }
})
