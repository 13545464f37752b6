import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type EtlInput, prepareEtl, runEtl, serve } from '../../support/etl.ts'
import { failsWith } from '../../support/fails-with.ts'

type Steps = NonNullable<EtlInput['transform']>
type Rows = Record<string, unknown>[]

const transform = (t: TestContext, rows: Rows, steps: Steps, max_bad_rows = 0) =>
  runEtl(t, {
    extract: { from: 'inline', rows },
    transform: steps,
    load: { to: 'result' },
    max_bad_rows,
  })

/** what it does, the rows, the steps, and what comes out */
const cases: [string, Rows, Steps, Rows][] = [
  ['nothing leaves rows as they are', [{ a: 1, b: [null] }], [], [{ a: 1, b: [null] }]],
  [
    'filter keeps rows for which the condition holds',
    [{ status: 'paid' }, { status: 'open' }, {}],
    [{ filter: { path: '$.status', eq: 'paid' } }],
    [{ status: 'paid' }],
  ],
  ['rename keeps the order of fields', [{ a: 1, b: 2 }], [{ rename: { a: 'c', x: 'y' } }], [{ c: 1, b: 2 }]],
  ['keep takes those that are there', [{ a: 1, b: 2 }], [{ keep: ['b', 'x'] }], [{ b: 2 }]],
  ['drop leaves the others', [{ a: 1, b: 2 }], [{ drop: ['b', 'x'] }], [{ a: 1 }]],
  [
    'derive adds to the row as it was, and its defaults are for null too',
    [{ a: 1, city: null }],
    [{ derive: { a: 2, b: '$.a', label: '{{ $.city ?? "?" }}-{{ $.a }}', none: '$.city' } }],
    [{ a: 2, city: null, b: 1, label: '?-1', none: null }],
  ],
  ['map makes a new row', [{ a: 1, b: { c: 2 } }], [{ map: { c: '$.b.c' } }], [{ c: 2 }]],
  ['limit ends it', [{ a: 1 }, { a: 2 }, { a: 3 }], [{ limit: 2 }], [{ a: 1 }, { a: 2 }]],
  [
    'sort knows several keys and both orders, puts what is not there last, and is stable',
    [{ a: 2, n: 1 }, { n: 2 }, { a: 1, n: 3 }, { a: 2, n: 4 }, { a: null, n: 5 }, { a: 2, n: 0 }],
    [{ sort: [{ by: '$.a', order: 'desc' }] }],
    [{ a: 2, n: 1 }, { a: 2, n: 4 }, { a: 2, n: 0 }, { a: 1, n: 3 }, { n: 2 }, { a: null, n: 5 }],
  ],
  [
    'group sums, counts, averages and finds the least and the greatest',
    [
      { country: 'DE', amount: 0.1, city: 'Ulm' },
      { country: 'FR', amount: '5', city: null },
      { country: 'DE', amount: 0.2, city: 'Aue' },
      { country: 'DE', amount: null },
    ],
    [
      {
        group: {
          by: ['country'],
          aggregate: {
            total: { sum: '$.amount' },
            orders: { count: true },
            cities: { count: '$.city' },
            mean: { avg: '$.amount' },
            least: { min: '$.amount' },
            last: { max: '$.city' },
          },
        },
      },
      { sort: [{ by: '$.country' }] },
    ],
    [
      {
        country: 'DE',
        total: 0.30000000000000004,
        orders: 3,
        cities: 2,
        mean: 0.15000000000000002,
        least: 0.1,
        last: 'Ulm',
      },
      { country: 'FR', total: 5, orders: 1, cities: 0, mean: 5, least: '5', last: null },
    ],
  ],
  [
    'group tells null, text and numbers apart',
    [{ a: '1' }, { a: 1 }, { a: null }, {}, { a: 'null' }],
    [{ group: { by: ['a'], aggregate: { n: { count: true } } } }],
    [
      { a: '1', n: 1 },
      { a: 1, n: 1 },
      { a: null, n: 2 },
      { a: 'null', n: 1 },
    ],
  ],
  [
    'group by nothing is one row, also of no rows',
    [],
    [{ group: { aggregate: { n: { count: true }, total: { sum: '$.a' } } } }],
    [{ n: 0, total: null }],
  ],
  [
    'steps follow each other',
    Array.from({ length: 10 }, (_, n) => ({ n: String(n) })),
    [
      { cast: { n: 'integer' } },
      { filter: { path: '$.n', gte: 4 } },
      { limit: 4 },
      { sort: [{ by: '$.n', order: 'desc' }] },
      { limit: 2 },
    ],
    [{ n: 7 }, { n: 6 }],
  ],
]

describe('a transformation:', () => {
  for (const [what, rows, steps, expected] of cases) {
    it(what, async (t) => {
      assert.deepEqual((await transform(t, rows, steps)).rows, expected)
    })
  }

  it('many small amounts add up exactly', async (t) => {
    const body = `amount\n${'0.1\n'.repeat(100_000)}`
    const url = await serve(t, (_request, response) => response.end(body))
    const { rows } = await runEtl(t, {
      extract: { from: 'http', url, format: 'csv' },
      transform: [{ group: { aggregate: { total: { sum: '$.amount' } } } }],
      load: { to: 'result' },
    })
    assert.deepEqual(rows, [{ total: 10_000 }])
  })

  it('the first few of many rows are found without holding all of them', async (t) => {
    const url = await serve(t, (_request, response) => {
      const lines = Array.from({ length: 150_000 }, (_, n) => (n * 7919) % 150_001)
      response.end(`n\n${lines.join('\n')}\n`)
    })
    const extract = { from: 'http', url, format: 'csv' } as const
    const sort: Steps = [{ cast: { n: 'integer' } }, { sort: [{ by: '$.n', order: 'desc' }] }]
    const { rows } = await runEtl(t, { extract, transform: [...sort, { limit: 3 }], load: { to: 'result' } })
    assert.deepEqual(rows, [{ n: 150_000 }, { n: 149_999 }, { n: 149_998 }])
    await assert.rejects(
      runEtl(t, { extract, transform: sort, load: { to: 'result' } }),
      failsWith('too_many_rows_to_sort', true, /limit right behind the sort/),
    )
    const group: Steps = [{ group: { by: ['n'], aggregate: { one: { count: true } } } }]
    await assert.rejects(
      runEtl(t, { extract, transform: group, load: { to: 'result' } }),
      failsWith('too_many_groups', true, /groups by n than fit/),
    )
  })

  it('nothing is read behind a limit', async (t) => {
    const lines = Array.from({ length: 5000 }, (_, n) => ({ n }))
    const result = await transform(t, lines, [{ limit: 5 }])
    assert.deepEqual([result.rows_read, result.rows_loaded], [5, 5])
  })
})

describe('a cast', () => {
  const casts: [string, unknown, unknown][] = [
    ['string', 5, '5'],
    ['string', '', ''],
    ['string', { a: 1 }, '{"a":1}'],
    ['number', ' -1.5e3 ', -1500],
    ['number', '', null],
    ['number', null, null],
    ['integer', '42', 42],
    ['integer', '4e2', 400],
    ['integer', '90071992547409931', '90071992547409931'],
    ['boolean', 'Yes', true],
    ['boolean', 0, false],
    ['timestamp', '2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['timestamp', '2026-01-31 12:00', '2026-01-31T12:00:00.000Z'],
    ['timestamp', '2026-01-31T12:00:00.123456+02', '2026-01-31T10:00:00.123Z'],
    ['timestamp', 1_769_860_800, '2026-01-31T12:00:00.000Z'],
    ['timestamp', 1_769_860_800_000, '2026-01-31T12:00:00.000Z'],
    ['date', '2026-01-31T23:30:00-05:00', '2026-02-01'],
    ['json', '{"a":[1]}', { a: [1] }],
    ['json', 5, 5],
  ]
  for (const [type, from, to] of casts) {
    it(`to ${type} makes ${JSON.stringify(to)} of ${JSON.stringify(from)}`, async (t) => {
      const { rows } = await transform(t, [{ a: from }, {}], [{ cast: { a: type } } as Steps[number]])
      assert.deepEqual(rows, [{ a: to }, {}])
    })
  }

  const refused: [string, unknown][] = [
    ['number', '12px'],
    ['number', '0x10'],
    ['number', 'Infinity'],
    ['integer', '1.5'],
    ['boolean', 'maybe'],
    ['timestamp', '2026-02-30'],
    ['timestamp', '31.01.2026'],
    ['timestamp', '2026-01-31T25:00'],
    ['json', '{'],
  ]
  for (const [type, from] of refused) {
    it(`to ${type} refuses ${JSON.stringify(from)}`, async (t) => {
      const steps = [{ cast: { a: type } }] as Steps
      const { rows, bad_rows, bad_row_samples } = await transform(t, [{ a: from }], steps, 1)
      assert.deepEqual([rows, bad_rows], [[], 1])
      assert.match(bad_row_samples[0]?.reason ?? '', /^a is not /)
    })
  }
})

describe('bad rows', () => {
  const numbers = (count: number): Rows => Array.from({ length: count }, (_, n) => ({ n: n % 2 ? 'x' : '1' }))
  const steps: Steps = [{ cast: { n: 'number' } }]

  it('are counted, and the first ones are shown with their place in the source', async (t) => {
    const result = await transform(t, numbers(100), steps, 50)
    assert.deepEqual([result.rows_read, result.rows_loaded, result.bad_rows], [100, 50, 50])
    assert.equal(result.bad_row_samples.length, 20)
    assert.deepEqual(result.bad_row_samples[0], {
      row: 2,
      reason: 'n is not a number: "x"',
      text: '{"n":"x"}',
    })
  })

  it('fail the job when there is one more than it allows', async (t) => {
    await assert.rejects(
      transform(t, numbers(100), steps, 49),
      failsWith(
        'too_many_bad_rows',
        true,
        /^50 rows cannot be used, and max_bad_rows is 49. Row 2 \(n is not a number: "x"\): /,
      ),
    )
    await assert.rejects(
      transform(t, numbers(2), steps),
      failsWith('too_many_bad_rows', true, /^A row cannot be used/),
    )
  })

  it('are shown cut, and as what Postgres can store', async (t) => {
    const row = { n: `\0${'ü'.repeat(2000)}` }
    const { bad_row_samples } = await transform(t, [row], [{ map: { a: '{{ $.b }}' } }], 1)
    const [sample] = bad_row_samples
    assert.equal(sample?.text.length, 500)
    assert.equal(sample?.reason, 'a needs $.b, which is not there')
  })

  it('of a group count in none of its aggregates', async (t) => {
    const rows = [{ a: 1, b: 2 }, { a: 3, b: 'x' }, { a: [1] }]
    const group = { aggregate: { a: { max: '$.a' }, b: { sum: '$.b' }, n: { count: true } } } as const
    const result = await transform(t, rows, [{ group }], 2)
    assert.deepEqual(result.rows, [{ a: 1, b: 2, n: 1 }])
    assert.deepEqual(
      result.bad_row_samples.map(({ row, reason }) => [row, reason]),
      [
        [2, 'b needs a number at $.b'],
        [3, 'a needs a number or a text at $.a'],
      ],
    )
  })
})

describe('a result', () => {
  it('has at most so many rows and bytes', async (t) => {
    const refused = failsWith('result_too_large', true, /Load into "postgres" or "http"/)
    await assert.rejects(transform(t, Array(10_001).fill({ a: 1 }), []), refused)
    await assert.rejects(transform(t, Array(200).fill({ a: 'x'.repeat(6000) }), []), refused)
  })
})

describe('fields that a step names', () => {
  const warnings = async (t: TestContext, rows: Rows, steps: Steps) => {
    const job = prepareEtl(t, { extract: { from: 'inline', rows }, transform: steps, load: { to: 'result' } })
    await job.attempt()
    return job.log.filter((line) => line.startsWith('No row had'))
  }

  it('and no row has are told in the log, with those that there are', async (t) => {
    const rows = [{ id: 1, status: 'paid', amount: '2' }]
    const steps: Steps = [
      { cast: { amout: 'number' } },
      { filter: { any: [{ path: '$.stauts', eq: 'paid' }, { not: { path: '$.status', eq: 'x' } }] } },
      { keep: ['id', 'x', 'y'] },
    ]
    assert.deepEqual(await warnings(t, rows, steps), [
      'No row had "amout", which transform.0 names. The first one had: id, status, amount',
      'No row had "stauts", which transform.1 names. The first one had: id, status, amount',
      'No row had "x", "y", which transform.2 names. The first one had: id, status, amount',
    ])
  })

  it('and that some rows have, or that no row was there to have, are not', async (t) => {
    const steps: Steps = [{ drop: ['b'] }, { group: { by: ['a'], aggregate: {} } }]
    assert.deepEqual(await warnings(t, [{ a: 1 }, { a: 1, b: 2 }], steps), [])
    assert.deepEqual(await warnings(t, [], steps), [])
  })
})
