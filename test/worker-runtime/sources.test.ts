import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import { parsePath } from '../../db/rules/paths.ts'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch } from '../../worker-runtime/egress/guarded-fetch.ts'
import { type CsvOptions, readCsv } from '../../worker-runtime/handlers/sources/csv.ts'
import { type HttpRequest, openHttp } from '../../worker-runtime/handlers/sources/http-body.ts'
import { readJson, readNdjson } from '../../worker-runtime/handlers/sources/json.ts'
import { readQuery } from '../../worker-runtime/handlers/sources/postgres-query.ts'
import type { BadRow, RowBatch } from '../../worker-runtime/handlers/sources/row-batch.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { failsWith } from '../support/fails-with.ts'

/** The text in pieces of three bytes: every boundary falls somewhere. */
async function* pieces(text: string, size = 3): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

const collect = async (batches: AsyncIterable<RowBatch>) => {
  const rows: unknown[] = []
  const bad: BadRow[] = []
  for await (const batch of batches) {
    rows.push(...batch.rows.map(({ row }) => row))
    bad.push(...batch.bad)
  }
  return { rows, bad }
}

const csv = (text: string, options?: CsvOptions) => collect(readCsv(pieces(text), options))

describe('CSV', () => {
  it('is read with quotes, line breaks, a byte order mark and any line end', async () => {
    const { rows } = await csv('\ufeffid,"the name"\r\n1,"Grüße, ""Ada"""\r\n\r\n2,"two\nlines"\r\n3,5" pipe')
    assert.deepEqual(rows, [
      { id: '1', 'the name': 'Grüße, "Ada"' },
      { id: '2', 'the name': 'two\nlines' },
      { id: '3', 'the name': '5" pipe' },
    ])
  })

  it('with another number of fields is a bad row, and the next ones are read', async () => {
    const { rows, bad } = await csv('a,b\n1,2\n3\n4,5,6\n7,8\n')
    assert.deepEqual(rows, [
      { a: '1', b: '2' },
      { a: '7', b: '8' },
    ])
    assert.deepEqual(bad, [
      { number: 2, reason: 'has 1 field instead of 2', text: '3' },
      { number: 3, reason: 'has 3 fields instead of 2', text: '4,5,6' },
    ])
  })

  it('takes other delimiters, quotes, names and nulls', async () => {
    const options = {
      delimiter: ';',
      quote: "'",
      header: false,
      columns: ['x', 'y'],
      nulls: ['NULL'],
      trim: true,
    }
    assert.deepEqual((await csv(" 1 ;'a;b'\nNULL;\n", options)).rows, [
      { x: '1', y: 'a;b' },
      { x: null, y: '' },
    ])
  })

  it('without a header numbers its columns, and names an empty heading', async () => {
    assert.deepEqual((await csv('1,2\n', { header: false })).rows, [{ column_1: '1', column_2: '2' }])
    assert.deepEqual((await csv(',b\n1,2\n')).rows, [{ column_1: '1', b: '2' }])
  })

  it('cannot reach the prototype of its rows', async () => {
    const { rows } = await csv('__proto__,constructor\n1,2\n')
    assert.deepEqual(Object.entries(rows[0] as object), [
      ['__proto__', '1'],
      ['constructor', '2'],
    ])
    assert.equal(Object.getPrototypeOf(rows[0]), Object.prototype)
  })

  it('whose quote is never closed is refused, and says where to look', async () => {
    const refused = failsWith('source_malformed', true, /quote .* never closed.*csv\.quote/)
    await assert.rejects(csv('a\n"1\n2\n'), refused)
    await assert.rejects(collect(readCsv(pieces(`a\n"${'x\n'.repeat(600_000)}`, 65_536))), refused)
  })

  it('with two columns of one name is refused', async () => {
    await assert.rejects(csv('a,a\n1,2\n'), failsWith('source_malformed', true, /two columns named "a"/))
  })

  it('of nothing is no rows', async () => {
    assert.deepEqual(await csv(''), { rows: [], bad: [] })
    assert.deepEqual(await csv('a,b\n'), { rows: [], bad: [] })
  })
})

describe('JSON', () => {
  it('is an array of rows, or has one at a path', async () => {
    assert.deepEqual((await collect(readJson(pieces('[{"a":1}, 2]')))).bad, [
      { number: 2, reason: 'is not an object', text: '2' },
    ])
    const nested = readJson(pieces('{"data":{"items":[{"a":1}]}}'), parsePath('$.data.items'))
    assert.deepEqual((await collect(nested)).rows, [{ a: 1 }])
  })

  it('without an array is refused, and says what to set', async () => {
    await assert.rejects(collect(readJson(pieces('{}'))), failsWith('source_malformed', true, /rows_at/))
    await assert.rejects(collect(readJson(pieces('{"a":'))), failsWith('source_malformed', true, /not JSON/))
  })

  it('by lines is read line by line; what is none is a bad row', async () => {
    const { rows, bad } = await collect(readNdjson(pieces('{"a":"ü"}\n\n{"a":\r\n[1]\n{"a":3}')))
    assert.deepEqual(rows, [{ a: 'ü' }, { a: 3 }])
    assert.deepEqual(
      bad.map(({ number, reason }) => [number, reason]),
      [
        [2, 'is not JSON'],
        [3, 'is not an object'],
      ],
    )
  })

  it('keeps every digit of a number that a double cannot hold', async () => {
    const line =
      '{"id":9007199254740993,"price":0.12345678901234567890,"ratio":0.30000000000000004,"n":1000000000000000000}'
    assert.deepEqual((await collect(readNdjson(pieces(line)))).rows, [
      { id: '9007199254740993', price: '0.12345678901234567890', ratio: 0.30000000000000004, n: 1e18 },
    ])
  })
})

describe('a body over HTTP', () => {
  const start = async (t: TestContext, listener: RequestListener) => {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
    t.after(async () => {
      await guard.close()
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rows?key=secret`
    const ctx = { fetch: guard.fetch, signal: new AbortController().signal }
    return (request: Partial<HttpRequest> = {}) => openHttp(ctx, { url, ...request })
  }

  it('is unzipped whatever its name, and says how far it is', async (t) => {
    const zipped = gzipSync('a\n1\n')
    const open = await start(t, (_request, response) =>
      response.writeHead(200, { 'content-length': zipped.length }).end(zipped),
    )
    const body = await open()
    assert.equal(body.fraction(), 0)
    assert.deepEqual((await collect(readCsv(body.chunks))).rows, [{ a: '1' }])
    assert.equal(body.fraction(), 1)
  })

  it('is read in the encoding that it has', async (t) => {
    const open = await start(t, (_request, response) => response.end(Buffer.from('a\nGrüße\n', 'latin1')))
    const { chunks } = await open({ encoding: 'windows-1252' })
    assert.deepEqual((await collect(readCsv(chunks))).rows, [{ a: 'Grüße' }])
  })

  it('that is damaged or too large is refused', async (t) => {
    const open = await start(t, (_request, response) =>
      response.end(gzipSync('a'.repeat(9000)).subarray(0, -12)),
    )
    await assert.rejects(
      async () => collect(readCsv((await open()).chunks)),
      failsWith('source_malformed', true, /gzip data of .*\[redacted\] is damaged/),
    )
    await assert.rejects(
      async () => collect(readCsv((await open({ maxBytes: 1024 })).chunks)),
      failsWith('source_too_large', true, /is larger than/),
    )
  })

  it('that breaks off is a network failure', async (t) => {
    const open = await start(t, (_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('a\n1\n')
      setImmediate(() => response.destroy())
    })
    await assert.rejects(
      async () => collect(readCsv((await open()).chunks)),
      failsWith('network_error', false, /broke off/),
    )
  })

  it('with another status is refused, for good or for as long as it says', async (t) => {
    const open = await start(t, (request, response) => {
      const status = Number(request.headers['x-status'])
      response.writeHead(status, { 'retry-after': '120' }).end('no such file')
    })
    await assert.rejects(
      open({ headers: { 'x-status': '404' } }),
      failsWith('http_status', true, /404 from GET .*no such/),
    )
    await assert.rejects(open({ headers: { 'x-status': '503' } }), {
      permanent: false,
      retryAfterSeconds: 120,
    })
  })
})

describe('a query of a named database', () => {
  let database: TestDatabase
  before(async () => {
    database = await createTestDatabase({ empty: true })
  })
  after(() => database.drop())

  const connect = async (t: TestContext) => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    t.after(() => client.end())
    return {
      query: async <Row>(text: string, values: readonly unknown[] = []) => {
        const { rows, rowCount } = await client.query(text, [...values])
        return { rows: rows as Row[], rowCount: rowCount ?? 0 }
      },
    }
  }

  it('gives its rows with every digit, time zone and null', async (t) => {
    const query = `
      select 9007199254740993::bigint as id, 1.50::numeric as price, '2024-01-02'::date as day, null::text as note,
        '2024-01-02 03:04:05.123456+00'::timestamptz at time zone 'UTC' as at, $1::int as n; `
    const { rows } = await collect(readQuery(await connect(t), query, [7]))
    assert.deepEqual(rows, [
      {
        id: '9007199254740993',
        price: 1.5,
        day: '2024-01-02',
        note: null,
        at: '2024-01-02T03:04:05.123456',
        n: 7,
      },
    ])
  })

  it('is read in batches, and can be left', async (t) => {
    const connection = await connect(t)
    const sizes: number[] = []
    for await (const { rows } of readQuery(connection, 'select n from generate_series(1, 2500) n'))
      sizes.push(rows.length)
    assert.deepEqual(sizes, [1000, 1000, 500])
    for await (const _ of readQuery(connection, 'select n from generate_series(1, 2500) n')) break
    assert.equal((await collect(readQuery(connection, 'select 1 as n'))).rows.length, 1)
  })

  it('changes nothing and is one statement', async (t) => {
    const connection = await connect(t)
    await connection.query('create table kept (n int)')
    const refused = (query: string, message: RegExp) =>
      assert.rejects(collect(readQuery(connection, query)), failsWith('database_error', true, message))
    await refused('select 1) source; drop table kept; --', /multiple commands|syntax error/)
    await refused(
      'with gone as (delete from kept returning n) select n from gone',
      /data-modifying|read-only/,
    )
    await refused('delete from kept returning n', /must be one select/)
    await refused(`select nextval('missing')`, /does not exist/)
    assert.equal((await connection.query('select from kept')).rowCount, 0)
  })
})
