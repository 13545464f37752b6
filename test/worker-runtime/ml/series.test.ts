import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { z } from 'zod'
import { parseAllowList } from '../../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch } from '../../../worker-runtime/egress/guarded-fetch.ts'
import type { JobContext } from '../../../worker-runtime/handler-api.ts'
import { schema } from '../../../worker-runtime/handlers/ml/schema.ts'
import { readSeries } from '../../../worker-runtime/handlers/ml/series.ts'
import { serve } from '../../support/etl.ts'
import { failsWith } from '../../support/fails-with.ts'

type HttpSeries = z.input<typeof schema>['series'] & { from: 'http' }

const answer =
  (body: string | Uint8Array, status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/csv' }).end(body)

/** What the handler makes of the body of an answer. */
const read = async (
  t: TestContext,
  listener: RequestListener,
  series: Partial<HttpSeries> = {},
): Promise<number[]> => {
  const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
  t.after(() => guard.close())
  const ctx = { fetch: guard.fetch, signal: new AbortController().signal } as JobContext
  const payload = { series: { from: 'http', url: await serve(t, listener), ...series }, horizon: 1 }
  return [...(await readSeries(schema.parse(payload).series, ctx))]
}

const values = Array.from({ length: 60 }, (_, n) => n / 4 - 5)
const csv = (rows: readonly unknown[] = values) =>
  ['day,sales,note', ...rows.map((value, n) => `${n},${value},"a, b"`)].join('\n')

describe('a series over HTTP', () => {
  it('is a column of a CSV file, gzipped or not', async (t) => {
    const named = { column: 'sales' }
    assert.deepEqual(await read(t, answer(csv()), named), values)
    assert.deepEqual(await read(t, answer(gzipSync(csv())), named), values)
    assert.deepEqual(await read(t, answer(`x\n${values.join('\n')}\n`)), values, 'the only column')
    const semicolons = values.map((value) => `x; ${value}`).join('\r\n')
    const options = { column: 'column_2', csv: { delimiter: ';', header: false } }
    assert.deepEqual(await read(t, answer(semicolons), options), values)
  })

  it('may have gaps, which are written in many ways', async (t) => {
    const gaps = ['', 'NA', 'N/A', 'NaN', 'nan', 'null', 'NULL']
    const found = await read(t, answer(csv([1, ...gaps, -2.5])), { column: 'sales' })
    assert.deepEqual(found, [1, ...gaps.map(() => Number.NaN), -2.5])
    const dashes = { column: 'sales', csv: { nulls: ['-'] } }
    assert.deepEqual(await read(t, answer(csv([1, '-', 3])), dashes), [1, Number.NaN, 3])
  })

  const refused: [string, string, Partial<HttpSeries>, string, RegExp][] = [
    [
      'text',
      csv([...values, 'many']),
      { column: 'sales' },
      'not_a_number',
      /^Row 61 has "many" in the column/,
    ],
    ['an infinite number', csv([...values, '1e999']), { column: 'sales' }, 'not_a_number', /^Row 61 /],
    ['a huge number', csv([...values, '1e101']), { column: 'sales' }, 'not_a_number', /beyond ±1e\+100\.$/],
    [
      'no such column',
      csv(),
      { column: 'Sales' },
      'unknown_column',
      /no column "Sales".*are day, sales, note\.$/,
    ],
    ['several columns', csv(), {}, 'unknown_column', /^Say with "column" where.*day, sales, note\.$/],
    ['a torn row', `${csv()}\n61,5`, { column: 'sales' }, 'source_malformed', /^Row 61 has 2 fields instead/],
    ['too many rows', `x\n${'1\n'.repeat(200_001)}`, {}, 'series_too_long', /more than 200000 values/],
  ]
  for (const [what, body, series, code, message] of refused) {
    it(`is refused, for good, with ${what}`, async (t) => {
      await assert.rejects(read(t, answer(body), series), failsWith(code, true, message))
    })
  }

  it('may be there later', async (t) => {
    await assert.rejects(read(t, answer('busy', 503)), failsWith('http_status', false, /^503 from GET/))
  })
})
