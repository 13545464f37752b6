import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test'
import type { JobContext } from '../../../worker-runtime/handler-api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type EtlInput, prepareEtl, runEtl, serve } from '../../support/etl.ts'
import { failsWith } from '../../support/fails-with.ts'

let database: TestDatabase
before(async () => {
  database = await createTestDatabase({ empty: true })
})
after(() => database.drop())
beforeEach(() =>
  database.sql(`
    drop table if exists orders, smartqueue_loads;
    create table orders (
      id int primary key,
      amount numeric check (amount >= 0),
      note text default 'none',
      paid_at timestamptz,
      tags text[],
      extra jsonb,
      twice numeric generated always as (amount * 2) stored
    )`),
)

type Load = Partial<EtlInput['load'] & { to: 'postgres' }>
type Rows = Record<string, unknown>[]

const into = (load: Load = {}): EtlInput['load'] => ({
  to: 'postgres',
  connection: 'warehouse',
  table: 'orders',
  batch_size: 4,
  ...load,
})
const payload = (rows: Rows, load: Load = {}, rest: Partial<EtlInput> = {}): EtlInput => ({
  extract: { from: 'inline', rows },
  load: into(load),
  ...rest,
})
const load = (t: TestContext, ...input: Parameters<typeof payload>) =>
  runEtl(t, payload(...input), database.url)
const orders = (columns = 'id, amount::float') => database.sql(`select ${columns} from orders order by id`)
const ids = async () => (await orders('id')).map(({ id }) => id)
const numbered = (count: number): Rows => Array.from({ length: count }, (_, n) => ({ id: n + 1, amount: n }))
const badIfFour = (row: Rows[number]) => (row.id === 4 ? { ...row, amount: -1 } : row)

describe('rows are appended', () => {
  it('with the types of their columns; what a row lacks gets its default', async (t) => {
    const result = await load(t, [
      { id: '1', amount: '1.50', paid_at: '2026-01-31T12:00:00Z', tags: ['a', 'b'], extra: { a: [null] } },
      { id: 2, amount: null, note: null },
      { id: 3 },
    ])
    assert.deepEqual([result.rows_read, result.rows_loaded, result.bad_rows], [3, 3, 0])
    assert.deepEqual(await orders('id, amount::float, note, paid_at, tags, extra'), [
      {
        id: 1,
        amount: 1.5,
        note: 'none',
        paid_at: new Date('2026-01-31T12:00:00Z'),
        tags: ['a', 'b'],
        extra: { a: [null] },
      },
      { id: 2, amount: null, note: null, paid_at: null, tags: null, extra: null },
      { id: 3, amount: null, note: 'none', paid_at: null, tags: null, extra: null },
    ])
  })

  it('in batches of any size', async (t) => {
    for (const [batch_size, from] of [
      [1, 0],
      [7, 100],
      [1000, 200],
    ] as const) {
      await load(
        t,
        numbered(15).map(({ id }) => ({ id: Number(id) + from })),
        { batch_size },
      )
    }
    assert.equal((await ids()).length, 45)
  })

  it('to a table in a schema, whatever its name and those of its columns', async (t) => {
    await database.sql(
      'create schema if not exists "odd "" one"; drop table if exists "odd "" one"."Rows; --"',
    )
    await database.sql(`create table "odd "" one"."Rows; --" ("a ""b" int, "select" text)`)
    await load(t, [{ 'a "b': 1, select: 'x' }], { table: 'odd " one.Rows; --' })
    assert.deepEqual(await database.sql(`select * from "odd "" one"."Rows; --"`), [
      { 'a "b': 1, select: 'x' },
    ])
  })

  it('without those that the database refuses, which are bad rows', async (t) => {
    const rows = numbered(20)
    Object.assign(rows[2] ?? {}, { id: 2 })
    Object.assign(rows[5] ?? {}, { amount: -1 })
    Object.assign(rows[6] ?? {}, { id: 'six' })
    Object.assign(rows[11] ?? {}, { note: 'a\0b' })
    const result = await load(t, rows, {}, { max_bad_rows: 4 })
    assert.deepEqual([result.rows_loaded, result.bad_rows], [16, 4])
    assert.equal((await ids()).length, 16)
    assert.deepEqual(
      result.bad_row_samples.map(({ row, reason }) => [row, reason.slice(0, 60)]),
      [
        [3, 'is refused by the database: duplicate key value violates uni'],
        [6, 'is refused by the database: new row for relation "orders" vi'],
        [7, 'is refused by the database: invalid input syntax for type in'],
        [12, 'is refused by the database: unsupported Unicode escape seque'],
      ],
    )
  })

  it('and a constraint that is deferred is asked for each of them', async (t) => {
    await database.sql(`alter table orders add constraint once unique (note) deferrable initially deferred`)
    const rows = [...'abca'].map((note, n) => ({ id: n, note }))
    const result = await load(t, rows, {}, { max_bad_rows: 1 })
    assert.deepEqual([result.rows_loaded, result.bad_rows], [3, 1])
  })

  it('up to too many bad ones; batches before that stay', async (t) => {
    const rows = numbered(12).map((row) => (Number(row.id) > 6 ? { ...row, amount: -1 } : row))
    await assert.rejects(
      load(t, rows, {}, { max_bad_rows: 1 }),
      failsWith('too_many_bad_rows', true, /Row 7 .*Row 8 /),
    )
    assert.deepEqual(await ids(), [1, 2, 3, 4])
  })
})

describe('rows are upserted', () => {
  it('by their key; of those with the same key in a batch the last one counts', async (t) => {
    await database.sql(`insert into orders (id, amount, note) values (1, 1, 'old'), (2, 2, 'old')`)
    const rows = [
      { id: '1', amount: 5 },
      { id: '3', amount: 6 },
      { id: '01', amount: 7 },
      { id: 2, note: 'new' },
    ]
    const result = await load(t, rows, { mode: 'upsert', key: ['id'], batch_size: 100 })
    assert.equal(result.rows_loaded, 4)
    assert.deepEqual(await orders('id, amount::int, note'), [
      { id: 1, amount: 7, note: 'old' },
      { id: 2, amount: 2, note: 'new' },
      { id: 3, amount: 6, note: 'none' },
    ])
  })

  it('by a key of all their fields, and one without its key is a bad row', async (t) => {
    const rows = [{ id: 1 }, { id: 1 }, { id: null }, {}]
    const result = await load(t, rows, { mode: 'upsert', key: ['id'] }, { max_bad_rows: 2 })
    assert.deepEqual([result.rows_loaded, result.bad_rows, await ids()], [2, 2, [1]])
    assert.equal(result.bad_row_samples[0]?.reason, 'has no id, which is part of the key')
  })

  it('by a column named like a property of Object.prototype', async (t) => {
    await database.sql('alter table orders add column "constructor" int unique')
    const rows: Rows = [{ id: 1, constructor: 1 }, { id: 2 }]
    const result = await load(t, rows, { mode: 'upsert', key: ['constructor'] }, { max_bad_rows: 1 })
    assert.deepEqual([result.rows_loaded, result.bad_rows, await ids()], [1, 1, [1]])
  })

  it('only by columns that are unique together', async (t) => {
    const refused = failsWith(
      'database_error',
      true,
      /Cannot upsert into \S*orders by note: it has no unique index on exactly/,
    )
    await assert.rejects(load(t, [{ id: 1, note: 'a' }], { mode: 'upsert', key: ['note'] }), refused)
  })
})

describe('before anything is loaded, a job is refused', () => {
  const refusals: [string, Rows, Load, string, RegExp][] = [
    [
      'an unknown column',
      [{ id: 1, amont: 2, x: 1 }],
      {},
      'unknown_column',
      /no column "amont", "x" .*It has: id, amount, note/,
    ],
    [
      'a column that cannot be written',
      [{ id: 1, twice: 2 }],
      {},
      'unknown_column',
      /no column "twice" that can be written/,
    ],
    [
      'an unknown table',
      [{ id: 1 }],
      { table: 'Orders' },
      'unknown_table',
      /no table Orders .*case-sensitive/,
    ],
    ['an unknown key', [{ id: 1 }], { mode: 'upsert', key: ['ID'] }, 'unknown_column', /no column "ID"/],
    [
      'an unknown connection',
      [{ id: 1 }],
      { connection: 'other' },
      'unknown_connection',
      /There are: warehouse/,
    ],
  ]
  for (const [what, rows, options, code, message] of refusals) {
    it(`for ${what}`, async (t) => {
      await assert.rejects(load(t, [...numbered(2), ...rows], options), failsWith(code, true, message))
      assert.deepEqual(await ids(), [])
    })
  }

  it('if its progress cannot be kept, and says how to mend it', async (t) => {
    await database.sql(`
      drop role if exists loader;
      create role loader login password 'loader';
      grant insert, select on orders to loader`)
    const url = new URL(database.url)
    url.username = url.password = 'loader'
    const job = prepareEtl(t, payload(numbered(2)), url.href)
    let statement = ''
    await assert.rejects(job.attempt(), (error: Error) => {
      statement = error.message.slice(error.message.indexOf('create table'))
      return failsWith('cannot_keep_progress', true, /permission denied for schema public/)(error)
    })
    await database.sql(`${statement}; grant select, insert, update, delete on smartqueue_loads to loader`)
    assert.equal((await job.attempt()).rows_loaded, 2)
    await database.sql('drop owned by loader; drop role loader')
  })
})

/** The worker dies at a statement: the server has run it, and the answer never arrives. */
const dyingAt = (open: JobContext['postgres'], doomed: number, die: () => void): JobContext['postgres'] => {
  let statements = 0
  return async (name) => {
    const connection = await open(name)
    return {
      query: async (text, values) => {
        const answer = connection.query(text, values)
        if (++statements !== doomed) return answer as never
        await answer.catch(() => {})
        die()
        throw new Error('died')
      },
    }
  }
}

describe('an attempt that dies at any statement is followed by one that loads each row once:', () => {
  const query = 'select id, case id when 4 then -1 else 1 end as amount from generate_series(1, 4) as id'
  const runs: [string, EtlInput['extract'], Load][] = [
    ['batch by batch', { from: 'inline', rows: numbered(4).map(badIfFour) }, {}],
    ['at once', { from: 'inline', rows: numbered(4).map(badIfFour) }, { atomic: true }],
    ['of a query', { from: 'postgres', connection: 'warehouse', query }, {}],
  ]
  for (const [what, extract, options] of runs) {
    it(what, async (t) => {
      const input = { extract, load: into({ batch_size: 2, ...options }), max_bad_rows: 1 }
      let deaths = 0
      for (let died = true; died; ) {
        died = false
        await database.sql('truncate orders')
        const job = prepareEtl(t, input, database.url)
        // The sessions of the attempt end with it, as those of a dead worker do.
        const wrap = (open: JobContext['postgres']) =>
          dyingAt(open, deaths + 1, () => {
            died = true
            deaths += 1
          })
        const result = await job.attempt({}, wrap).catch(() => job.attempt())
        const { rows_loaded, bad_rows, bad_row_samples } = result
        assert.deepEqual([rows_loaded, bad_rows, bad_row_samples.length], [3, 1, 1], `at statement ${deaths}`)
        assert.deepEqual(await ids(), [1, 2, 3], `at statement ${deaths}`)
      }
      assert.ok(deaths > 20, `${deaths} deaths`)
    })
  }
})

describe('an attempt that comes later', () => {
  const csv = (count: number) =>
    `id,amount\n${Array.from({ length: count }, (_, n) => `${n + 1},${n}\n`).join('')}`
  /** Breaks off at the first request, a little before the end. */
  const unreliable = (t: TestContext, first: string, then = first) => {
    let requests = 0
    return serve(t, (_request, response) => {
      requests += 1
      if (requests > 1) return response.end(then)
      response.writeHead(200, { 'content-length': first.length + 1000 }).write(first)
      setTimeout(() => response.destroy(), 50)
    })
  }
  const fromHttp = (url: string): EtlInput => ({
    extract: { from: 'http', url, format: 'csv' },
    load: into(),
  })

  it('goes on where a broken download has left off', async (t) => {
    const job = prepareEtl(t, fromHttp(await unreliable(t, csv(10))), database.url)
    await assert.rejects(job.attempt(), failsWith('network_error', false, /broke off/))
    const loaded = (await ids()).length
    assert.ok(loaded > 0 && loaded < 10, `${loaded} loaded`)
    assert.deepEqual((await job.attempt()).rows_loaded, 10)
    assert.equal((await ids()).length, 10)
    assert.ok(job.log.includes(`Goes on behind ${loaded} rows that are loaded`), job.log.join('\n'))
  })

  it('finds that the source has changed, and loads nothing more', async (t) => {
    const changed = csv(10).replace('\n2,1', '\n2,7')
    const job = prepareEtl(t, fromHttp(await unreliable(t, csv(10), changed)), database.url)
    await assert.rejects(job.attempt(), failsWith('network_error', false, /broke off/))
    const loaded = await ids()
    await assert.rejects(job.attempt(), failsWith('source_changed', true, /submit a new job/))
    assert.deepEqual(await ids(), loaded)
  })

  it('finds that the source has become shorter', async (t) => {
    const job = prepareEtl(t, fromHttp(await unreliable(t, csv(10), csv(2))), database.url)
    await assert.rejects(job.attempt(), failsWith('network_error', false, /broke off/))
    await assert.rejects(job.attempt(), failsWith('source_changed', true, /submit a new job/))
  })

  it('takes the load over: one that comes back from the past changes nothing', async (t) => {
    const job = prepareEtl(t, payload(numbered(10)), database.url)
    const { promise: frozen, resolve: freezes } = Promise.withResolvers<void>()
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>()
    let batches = 0
    const past = job.attempt({}, (open) => async (name) => {
      const connection = await open(name)
      return {
        query: async (text, values) => {
          if (text.includes('insert into "public"."orders"') && ++batches === 2) {
            freezes()
            await thawed
          }
          return connection.query(text, values)
        },
      }
    })
    past.catch(() => {})
    await frozen
    assert.equal((await job.attempt()).rows_loaded, 10)
    thaw()
    await assert.rejects(past, failsWith('load_superseded', false, /later attempt/))
    await assert.rejects(
      job.attempt({ fencingToken: '1' }),
      failsWith('load_superseded', false, /later attempt/),
    )
    assert.equal((await ids()).length, 10)
  })

  it('than the end answers what the one before would have', async (t) => {
    const job = prepareEtl(t, payload(numbered(10), { atomic: true }), database.url)
    const result = await job.attempt()
    assert.deepEqual(await job.attempt(), result)
    assert.equal((await ids()).length, 10)
  })

  it('forgets loads that are long over', async (t) => {
    await load(t, numbered(1))
    await database.sql(`update smartqueue_loads set updated_at = now() - interval '8 days'`)
    await load(t, [{ id: 2 }])
    assert.equal((await database.sql('select from smartqueue_loads')).length, 1)
  })
})

it('one that is cancelled stops between two batches', async (t) => {
  const controller = new AbortController()
  const job = prepareEtl(t, payload(numbered(5000), { batch_size: 100 }), database.url)
  const attempt = job.attempt({ signal: controller.signal }, (open) => async (name) => {
    const connection = await open(name)
    return {
      query: async (text, values) => {
        if (text.includes('with moved')) controller.abort(new Error('cancelled'))
        return connection.query(text, values)
      },
    }
  })
  await assert.rejects(attempt, /cancelled/)
  assert.deepEqual(await ids(), [])
})

it('rows travel from one query to another table, with all their digits', async (t) => {
  await database.sql(
    'drop table if exists big; create table big (id bigint, n numeric, at timestamptz, day date, extra jsonb)',
  )
  const result = await runEtl(
    t,
    {
      extract: {
        from: 'postgres',
        connection: 'warehouse',
        query: `select 9007199254740993 + n as id, 0.12345678901234567890 as n, '2026-01-31 12:00:00.123456+00'::timestamptz as at,
          '2026-01-31'::date as day, '{"a": null}'::jsonb as extra from generate_series(1, $1::int) as n`,
        params: [3],
      },
      load: into({ table: 'public.big' }),
    },
    database.url,
  )
  assert.equal(result.rows_loaded, 3)
  assert.deepEqual(
    await database.sql(`select id, n, to_char(at, 'SS.US') as at, day::text, extra from big limit 1`),
    [
      {
        id: '9007199254740994',
        n: '0.12345678901234567890',
        at: '00.123456',
        day: '2026-01-31',
        extra: { a: null },
      },
    ],
  )
})
