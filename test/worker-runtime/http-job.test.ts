import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch } from '../../worker-runtime/egress/guarded-fetch.ts'
import { type JobContext, JobError } from '../../worker-runtime/handler-api.ts'
import { httpJob } from '../../worker-runtime/handlers/http.ts'

const MIB = 1024 * 1024

type Payload = Omit<z.input<typeof httpJob.schema>, 'url'> & { path?: string }
type Result = {
  status: number
  headers: Record<string, string>
  body: unknown
  truncated: boolean
  duration_ms: number
  url: string
}

/** A server, and a function that runs the handler against it the way the executor does. */
async function start(t: TestContext, listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
  t.after(async () => {
    await guard.close()
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const logs: string[] = []
  const log = (message: string) => void logs.push(message)
  const run = async ({ path = '/', ...payload }: Payload = {}, context: Partial<JobContext> = {}) => {
    const ctx: JobContext = {
      jobId: 'job',
      orgId: 'org',
      attempt: 1,
      fencingToken: '1',
      lastCheckpoint: null,
      progress: () => {},
      checkpoint: async () => {},
      signal: new AbortController().signal,
      log: { debug: log, info: log, warn: log, error: log },
      fetch: guard.fetch,
      postgres: () => assert.fail('an http job needs no database'),
      ...context,
    }
    return (await httpJob.run(httpJob.schema.parse({ url: origin + path, ...payload }), ctx)) as Result
  }
  return { origin, logs, run, fetch: guard.fetch }
}

const answer =
  (type: string | undefined, body: string | Uint8Array, status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status, type === undefined ? {} : { 'content-type': type }).end(body)

const echo: RequestListener = async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const seen = { method: request.method, type: request.headers['content-type'], body }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(seen))
}

const failsWith = (code: string, permanent: boolean, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof JobError, String(error))
  assert.deepEqual([error.code, error.permanent], [code, permanent])
  assert.match(error.message, message)
  return true
}

describe('an http job stores', () => {
  const bodies: [string, string | undefined, string | Uint8Array, unknown][] = [
    ['JSON as JSON', 'application/json', '{"a":[1,null]}', { a: [1, null] }],
    ['JSON with a suffix type and a charset', 'Application/Problem+JSON; charset=utf-8', '{"a":1}', { a: 1 }],
    ['broken JSON as text', 'application/json', '{"a":', '{"a":'],
    ['text as text', 'text/plain', 'grüße', 'grüße'],
    [
      'text in the charset it names',
      'text/html; charset="iso-8859-1"',
      Buffer.from('grüße', 'latin1'),
      'grüße',
    ],
    ['text in an unknown charset as UTF-8', 'text/plain; charset=nonsense', 'grüße', 'grüße'],
    ['XML as text', 'image/svg+xml', '<svg/>', '<svg/>'],
    ['binary as base64', 'image/png', Buffer.from([0, 255, 1]), { base64: 'AP8B' }],
    ['text of no type as text', undefined, 'grüße', 'grüße'],
    ['bytes of no type as base64', undefined, Buffer.from([0, 255, 1]), { base64: 'AP8B' }],
    ['an empty body of any type as an empty text', 'image/png', '', ''],
  ]
  for (const [what, type, sent, stored] of bodies) {
    it(what, async (t) => {
      const { run } = await start(t, answer(type, sent))
      const { body, truncated } = await run()
      assert.deepEqual([body, truncated], [stored, false])
    })
  }

  it('status, final URL, duration and lower-case headers, without cookies', async (t) => {
    const { run, origin } = await start(t, (request, response) => {
      if (request.url === '/') return response.writeHead(302, { location: '/end?x=1' }).end()
      return response.writeHead(201, { 'X-Mixed-Case': 'Kept', 'Set-Cookie': ['a=secret', 'b=secret'] }).end()
    })
    const result = await run()
    assert.deepEqual([result.status, result.url], [201, `${origin}/end?x=1`])
    assert.equal(result.headers['x-mixed-case'], 'Kept')
    assert.equal(result.headers['set-cookie'], '[redacted]')
    assert.ok(Number.isInteger(result.duration_ms) && result.duration_ms >= 0)
    assert.ok(!JSON.stringify(result).includes('secret'))
  })

  it('the content of a compressed response', async (t) => {
    const { run } = await start(t, (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
        .end(gzipSync('small')),
    )
    assert.equal((await run()).body, 'small')
  })
})

describe('the 1 MiB limit', () => {
  const endless = (type: string, chunk: Uint8Array) => {
    const hungUp = Promise.withResolvers<void>()
    const pump = (response: ServerResponse): void => {
      while (!response.destroyed && response.write(chunk)) {}
    }
    const listener: RequestListener = (_request, response) => {
      response.on('close', hungUp.resolve).on('drain', () => pump(response))
      pump(response.writeHead(200, { 'content-type': type }))
    }
    return { listener, hungUp: hungUp.promise }
  }

  it('cuts an endless response and hangs up', async (t) => {
    const { listener, hungUp } = endless('application/octet-stream', Buffer.alloc(10_000, 7))
    const { run } = await start(t, listener)
    const { body, truncated } = await run()
    assert.equal(truncated, true)
    assert.equal(Buffer.from((body as { base64: string }).base64, 'base64').length, MIB)
    await hungUp
  })

  it('leaves no half character at the cut', async (t) => {
    const { run } = await start(t, endless('text/plain', Buffer.from('€'.repeat(1000))).listener)
    const { body } = await run()
    assert.equal(body, '€'.repeat(Math.floor(MIB / 3)))
  })

  it('holds for a small response that unpacks to a large one', async (t) => {
    const { run } = await start(t, (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.alloc(8 * MIB, 'a'))),
    )
    const { body, truncated } = await run()
    assert.deepEqual([(body as string).length, truncated], [MIB, true])
  })

  it('passes a body of exactly that size whole', async (t) => {
    const { run } = await start(t, answer('text/plain', Buffer.alloc(MIB, 'a')))
    const { body, truncated } = await run()
    assert.deepEqual([(body as string).length, truncated], [MIB, false])
  })
})

describe('the request of an http job', () => {
  const requests: [string, Payload, object][] = [
    ['is a GET by default', {}, { method: 'GET', body: '' }],
    [
      'sends a JSON value as JSON',
      { method: 'POST', body: { a: 1 } },
      { type: 'application/json', body: '{"a":1}' },
    ],
    ['sends null as JSON', { method: 'PUT', body: null }, { type: 'application/json', body: 'null' }],
    [
      'sends a string as it is',
      { method: 'PATCH', body: 'plain' },
      { type: 'text/plain;charset=UTF-8', body: 'plain' },
    ],
    [
      'keeps a content type that is given in any case',
      { method: 'POST', headers: { 'Content-TYPE': 'application/vnd.x+json' }, body: [1] },
      { type: 'application/vnd.x+json', body: '[1]' },
    ],
    ['deletes without a body', { method: 'DELETE' }, { method: 'DELETE', body: '' }],
  ]
  for (const [what, payload, expected] of requests) {
    it(what, async (t) => {
      const { run } = await start(t, echo)
      const { body } = await run(payload)
      assert.deepEqual(body, { ...(body as object), ...expected })
    })
  }

  it('reads no body after HEAD', async (t) => {
    const { run } = await start(t, answer('application/json', '{"a":1}'))
    assert.equal((await run({ method: 'HEAD' })).body, '')
  })

  it('is logged in one line, its answer in another, without the query', async (t) => {
    const { run, logs, origin } = await start(t, answer('text/plain', 'four'))
    await run({ path: '/path?token=secret#secret' })
    assert.equal(logs.length, 2)
    assert.equal(logs[0], `GET ${origin}/path?[redacted]`)
    assert.match(logs[1] ?? '', /^200, 4 bytes in \d+ ms$/)
  })

  it('is refused by the guard where the address is not permitted', async (t) => {
    const { run } = await start(t, (_request, response) =>
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    )
    await assert.rejects(run(), failsWith('address_refused', true, /169\.254\.169\.254/))
  })

  it('rejects with the reason of the signal while the body arrives', async (t) => {
    const controller = new AbortController()
    const reason = new Error('timed out')
    const { run, fetch } = await start(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('begun')
    })
    const abortAfterHeaders: JobContext['fetch'] = async (url, init) => {
      const response = await fetch(url, init)
      setImmediate(() => controller.abort(reason))
      return response
    }
    const aborted = run({}, { signal: controller.signal, fetch: abortAfterHeaders })
    await assert.rejects(aborted, (error) => error === reason)
  })

  it('fails as a retryable network error when the body breaks off', async (t) => {
    const { run } = await start(t, (_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half', () => response.destroy())
    })
    await assert.rejects(
      run({ path: '/?token=secret' }),
      failsWith(
        'network_error',
        false,
        /^The response of http:\/\/127\.0\.0\.1:\d+\/\?\[redacted\] broke off: UND_ERR_SOCKET$/,
      ),
    )
  })
})

describe('the status of an http job', () => {
  for (const status of [500, 502, 503, 599, 408, 425, 429]) {
    it(`${status} is worth a retry`, async (t) => {
      const { run } = await start(t, answer('text/plain', 'why', status))
      await assert.rejects(
        run(),
        failsWith('http_status', false, new RegExp(`^${status} from GET http.*: why$`)),
      )
    })
  }

  const NOW = 'Tue, 17 Nov 2026 10:00:00 GMT'
  const waits: [status: number, headers: Record<string, string>, seconds: number | undefined][] = [
    [429, { 'retry-after': '120' }, 120],
    [503, { 'retry-after': ' 7 ' }, 7],
    [503, { 'retry-after': '0' }, 0],
    [429, { date: NOW, 'retry-after': 'Tue, 17 Nov 2026 10:01:30 GMT' }, 90],
    [503, { date: NOW, 'retry-after': 'Tuesday, 17-Nov-26 10:01:30 GMT' }, 90],
    [503, { date: NOW, 'retry-after': 'Tue Nov 17 10:01:30 2026' }, 90],
    [503, { date: NOW, 'retry-after': 'Tue, 17 Nov 2026 09:00:00 GMT' }, 0],
    [429, { 'retry-after': 'soon' }, undefined],
    [429, { 'retry-after': '-5' }, undefined],
    [429, { 'retry-after': '1.5' }, undefined],
    [429, { 'retry-after': '2026-11-17' }, undefined],
    [429, {}, undefined],
    [500, { 'retry-after': '120' }, undefined],
    [404, { 'retry-after': '120' }, undefined],
  ]
  for (const [status, headers, seconds] of waits) {
    it(`${status} with ${JSON.stringify(headers)} asks for ${seconds ?? 'no'} seconds`, async (t) => {
      const { run } = await start(t, (_request, response) => response.writeHead(status, headers).end())
      await assert.rejects(run(), (error: JobError) => error.retryAfterSeconds === seconds)
    })
  }

  it('with a date is read by the clock here where the server shows none', async (t) => {
    const { run } = await start(t, (_request, response) => {
      response.sendDate = false
      response.writeHead(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end()
    })
    await assert.rejects(
      run(),
      ({ retryAfterSeconds = 0 }: JobError) => Math.abs(retryAfterSeconds - 60) <= 2,
    )
  })

  for (const status of [400, 401, 404, 410, 422, 304, 302]) {
    it(`${status} is final`, async (t) => {
      const { run } = await start(t, answer('text/plain', '', status))
      await assert.rejects(run(), failsWith('http_status', true, new RegExp(`^${status} from GET http`)))
    })
  }

  const expectations: [number, Payload['expected_status'], boolean][] = [
    [204, undefined, true],
    [299, undefined, true],
    [404, 404, true],
    [503, [200, 503], true],
    [200, 404, false],
    [201, [200, 202], false],
  ]
  for (const [status, expected_status, passes] of expectations) {
    it(`${status} ${passes ? 'passes' : 'fails'} when ${expected_status ?? 'nothing'} is expected`, async (t) => {
      const { run } = await start(t, answer('text/plain', '', status))
      const outcome = run(expected_status === undefined ? {} : { expected_status })
      if (passes) assert.equal((await outcome).status, status)
      else await assert.rejects(outcome, failsWith('http_status', true, /GET/))
    })
  }

  it('302 is a result, not followed, when it is expected', async (t) => {
    const { run } = await start(t, (_request, response) =>
      response.writeHead(302, { location: '/next' }).end(),
    )
    const result = await run({ expected_status: 302 })
    assert.deepEqual([result.status, result.headers.location], [302, '/next'])
  })

  it('304 may be expected while redirects are followed', async (t) => {
    const { run } = await start(t, ({ url }, response) =>
      response.writeHead(url === '/' ? 302 : 304, { location: '/next' }).end(),
    )
    assert.equal((await run({ expected_status: [200, 304] })).status, 304)
  })

  it('is reported with the first 300 characters of the body and without the query', async (t) => {
    const sent = `\0line\r\n${'x'.repeat(292)}😀 and more`
    const { run } = await start(t, answer('text/plain', sent, 500))
    await assert.rejects(run({ method: 'POST', path: '/p?token=secret' }), (error: JobError) => {
      const [, excerpt = ''] = error.message.split(
        /^500 from POST http:\/\/127\.0\.0\.1:\d+\/p\?\[redacted\]: /,
      )
      assert.equal(excerpt, ` line ${'x'.repeat(292)}\ufffd`)
      return true
    })
  })
})

describe('the payload of an http job', () => {
  const issuesOf = (payload: object): string =>
    httpJob.schema
      .safeParse(payload)
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('\n') ?? 'accepted'
  const url = 'https://a.example/'
  const manyHeaders = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, '']))

  const refusals: [string, object, RegExp][] = [
    ['no URL', {}, /^url: /],
    ['a URL of another scheme', { url: 'ftp://a.example/' }, /^url: .*http: or https:/],
    ['a URL with a user name', { url: 'https://me@a.example/' }, /^url: .*without a user name/],
    ['a URL with a password', { url: 'https://me:pw@a.example/' }, /^url: .*without a user name/],
    ['a URL without a host', { url: 'https:///' }, /^url: /],
    ['a URL that does not parse', { url: 'http://a.example:99999/' }, /^url: is not a valid URL/],
    ['a URL too long', { url: url + 'a'.repeat(2048) }, /^url: /],
    ['an unknown field', { url, timeout: 1 }, /timeout/],
    ['an unknown method', { url, method: 'TRACE' }, /^method: /],
    ['a body with GET', { url, body: 'x' }, /^body: a GET or HEAD request has no body$/],
    ['a null body with HEAD', { url, method: 'HEAD', body: null }, /^body: a GET or HEAD/],
    [
      'a header name that is no token',
      { url, headers: { 'a b': 'c' } },
      /^headers.a b: is not a valid header name$/,
    ],
    ['an empty header name', { url, headers: { '': 'c' } }, /is not a valid header name$/],
    ['a header value with CR LF', { url, headers: { a: 'b\r\nc: d' } }, /^headers.a: /],
    ['a header value with NUL', { url, headers: { a: 'b\0' } }, /^headers.a: /],
    ['a header value beyond Latin-1', { url, headers: { a: '€' } }, /^headers.a: /],
    ['a header value too long', { url, headers: { a: 'b'.repeat(8193) } }, /^headers.a: /],
    ['51 headers', { url, headers: manyHeaders(51) }, /^headers: at most 50 headers$/],
    ['no expected status', { url, expected_status: [] }, /^expected_status: /],
    ['an expected status that cannot be', { url, expected_status: 99 }, /^expected_status: /],
    ['an expected status that is no integer', { url, expected_status: [200.5] }, /^expected_status/],
  ]
  for (const [what, payload, issue] of refusals) {
    it(`is refused with ${what}`, () => assert.match(issuesOf(payload), issue))
  }

  for (const name of [
    'Host',
    'content-length',
    'Transfer-Encoding',
    'CONNECTION',
    'keep-alive',
    'te',
    'trailer',
    'upgrade',
    'Expect',
  ]) {
    it(`is refused with the header ${name}`, () => {
      assert.equal(
        issuesOf({ url, headers: { [name]: 'x' } }),
        `headers.${name}: ${name} belongs to the connection and cannot be set`,
      )
    })
  }

  it('is accepted at its limits', () => {
    const headers = { ...manyHeaders(49), 'X-Long': 'b'.repeat(8192) }
    assert.equal(issuesOf({ url: `HTTPS://a.example/${'a'.repeat(2048 - 18)}`, headers }), 'accepted')
    assert.equal(
      issuesOf({ url: 'http://[::1]:8080?q=a@b', method: 'OPTIONS', body: [], expected_status: [200, 599] }),
      'accepted',
    )
  })

  it('is described by a JSON Schema that the edge can validate with', () => {
    const jsonSchema = z.toJSONSchema(httpJob.schema, { io: 'input' })
    assert.deepEqual(jsonSchema.required, ['url'])
    assert.equal(jsonSchema.additionalProperties, false)
    assert.match(JSON.stringify(jsonSchema.properties?.headers), /"maxProperties":50/)
    const edge = z.fromJSONSchema(jsonSchema)
    assert.ok(
      edge.safeParse({ url, method: 'POST', headers: { a: 'b' }, body: { any: [1] }, expected_status: 201 })
        .success,
    )
    for (const bad of [
      { url: 'ftp://a.example/' },
      { url: 'https://me@a.example/' },
      { url, headers: { a: '\n' } },
      { url, extra: 1 },
    ]) {
      assert.ok(!edge.safeParse(bad).success, JSON.stringify(bad))
    }
  })
})
