import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, Socket } from 'node:net'
import { before, describe, it, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch, type Lookup } from '../../worker-runtime/egress/guarded-fetch.ts'
import { type GuardedFetch, JobError } from '../../worker-runtime/handler-api.ts'

type Listening = { port: number; connections: () => number; closed: () => Promise<unknown> }

async function listen(t: TestContext, server: Server): Promise<Listening> {
  let connections = 0
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.push(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const closed = () => Promise.all(sockets.map((socket) => socket.destroyed || once(socket, 'close')))
  return { port: (server.address() as AddressInfo).port, connections: () => connections, closed }
}

const serve = (t: TestContext, listener: RequestListener): Promise<Listening> =>
  listen(t, createHttpServer(listener))

const ok: RequestListener = (_request, response) => response.end('ok')

function guarded(t: TestContext, allow: string, lookup?: Lookup): GuardedFetch {
  const guard = createGuardedFetch({ allow: parseAllowList(allow), ...(lookup && { lookup }) })
  t.after(() => guard.close())
  return guard.fetch
}

const dns =
  (...addresses: string[]): Lookup =>
  async () =>
    addresses.map((address) => ({ address }))

const refused =
  (code: string, ...parts: string[]) =>
  (error: unknown) => {
    assert.ok(error instanceof JobError, String(error))
    assert.equal(error.code, code, error.message)
    assert.equal(error.permanent, code !== 'network_error')
    for (const part of parts) assert.ok(error.message.includes(part), error.message)
    return true
  }

/** Tenants read the message, so it must not reveal addresses in the operator's network. */
const hides = (address: string, check: (error: unknown) => boolean) => (error: unknown) => {
  assert.ok(error instanceof Error && !error.message.includes(address), String(error))
  return check(error)
}

describe('a refused address', () => {
  const notations = [
    ['dotted', '127.0.0.1'],
    ['octal', '0177.0.0.1'],
    ['one octal number', '017700000001'],
    ['hexadecimal', '0x7f.1'],
    ['one hexadecimal number', '0x7f000001'],
    ['decimal', '2130706433'],
    ['short', '127.1'],
    ['zero', '0'],
    ['with a root dot', '127.0.0.1.'],
    ['in full-width digits', '１２７.0.0.1'],
    ['percent-encoded', '%31%32%37.0.0.1'],
    ['IPv4-mapped', '[::ffff:127.0.0.1]'],
    ['IPv4-mapped in hex', '[::ffff:7f00:1]'],
    ['IPv4-mapped in full', '[0:0:0:0:0:FFFF:7F00:0001]'],
    ['IPv4-compatible', '[::127.0.0.1]'],
    ['IPv4-translated', '[::ffff:0:127.0.0.1]'],
    ['6to4', '[2002:7f00:1::]'],
    ['NAT64', '[64:ff9b::7f00:1]'],
    ['local NAT64', '[64:ff9b:1::7f00:1]'],
    ['Teredo', '[2001:0:7f00:1::]'],
    ['IPv6', '[::1]'],
    ['unspecified', '[::]'],
  ] as const
  for (const [what, host] of notations) {
    it(`is never contacted when written ${what}: ${host}`, async (t) => {
      const server = await serve(t, ok)
      await assert.rejects(
        guarded(t, '')(`http://${host}:${server.port}/`),
        refused('address_refused', 'SMARTQUEUE_HTTP_ALLOW', String(server.port)),
      )
      assert.equal(server.connections(), 0)
    })
  }

  for (const address of [
    '127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::1',
    '2002:7f00:1::',
    '64:ff9b::7f00:1',
    '169.254.169.254',
    'fd00:ec2::254',
    '10.0.0.1',
  ]) {
    it(`is never contacted when DNS answers ${address}, and the message does not reveal it`, async (t) => {
      const server = await serve(t, ok)
      const fetch = guarded(t, '', dns(address))
      await assert.rejects(
        fetch(`http://inner.example:${server.port}/`),
        hides(
          address,
          refused('address_refused', `inner.example port ${server.port}`, 'SMARTQUEUE_HTTP_ALLOW'),
        ),
      )
      assert.equal(server.connections(), 0)
    })
  }

  it('is never contacted through localhost and the DNS of the system', async (t) => {
    const server = await serve(t, ok)
    await assert.rejects(
      guarded(t, '')(`http://localhost:${server.port}/`),
      refused('address_refused', 'localhost'),
    )
    assert.equal(server.connections(), 0)
  })

  it('refuses the name although other answers are permitted', async (t) => {
    const server = await serve(t, ok)
    for (const answers of [
      dns('127.0.0.1', '127.0.0.3'),
      dns('127.0.0.3', '127.0.0.1'),
      dns('127.0.0.1', 'fe80::1%lo'),
    ]) {
      const fetch = guarded(t, '127.0.0.1', answers)
      await assert.rejects(
        fetch(`http://mixed.example:${server.port}/`),
        refused('address_refused', 'mixed.example'),
      )
    }
    assert.equal(server.connections(), 0)
  })

  it('is never connected to after rebinding: what was checked is what is used', async (t) => {
    const victim = await serve(t, ok)
    // 127.0.0.2 plays the public address: permitted, on this machine, and nothing listens there.
    const answers = ['127.0.0.2', '127.0.0.1']
    let lookups = 0
    const fetch = guarded(t, '127.0.0.2', async () => [{ address: answers[lookups++] ?? '127.0.0.1' }])
    await assert.rejects(fetch(`http://rebind.example:${victim.port}/`), refused('network_error'))
    assert.equal(lookups, 1)
    await assert.rejects(fetch(`http://rebind.example:${victim.port}/`), refused('address_refused'))
    assert.equal(lookups, 2)
    assert.equal(victim.connections(), 0)
  })

  it('is never connected to after rebinding between two hops', async (t) => {
    // The server closes the socket of the first hop: one that is kept alive would serve the second without a lookup.
    const server = await serve(t, (_request, response) =>
      response.writeHead(302, { location: '/again', connection: 'close' }).end(),
    )
    const answers = ['127.0.0.1', '169.254.169.254']
    const fetch = guarded(t, '127.0.0.1', async () => [{ address: answers.shift() ?? '' }])
    await assert.rejects(
      fetch(`http://rebind.example:${server.port}/`),
      refused('address_refused', 'rebind.example'),
    )
    assert.equal(server.connections(), 1)
  })

  for (const protocol of ['http', 'https']) {
    it(`gets no byte over ${protocol} when only the connected peer betrays it`, async (t) => {
      let bytes = 0
      const tcp = createTcpServer((socket) =>
        socket.on('data', (chunk) => {
          bytes += chunk.length
          socket.destroy()
        }),
      )
      const server = await listen(t, tcp)
      const fetch = guarded(t, '127.0.0.1')
      // Node reads `remoteAddress` through this method; no other seam can make a socket lie.
      t.mock.method(Socket.prototype as Socket & { _getpeername(): object }, '_getpeername', () => ({
        address: '10.0.0.1',
      }))
      await assert.rejects(
        fetch(`${protocol}://127.0.0.1:${server.port}/`),
        hides('10.0.0.1', refused('address_refused', '127.0.0.1')),
      )
      await server.closed()
      assert.equal(bytes, 0)
    })
  }
})

describe('the allow-list', () => {
  it('admits by host, host:port, address and subnet', async (t) => {
    const server = await serve(t, ok)
    const lookup = dns('127.0.0.1')
    for (const allow of [
      'inner.example',
      `inner.example:${server.port}`,
      '127.0.0.1',
      `127.0.0.1:${server.port}`,
      '127.0.0.0/8',
    ]) {
      const response = await guarded(t, allow, lookup)(`http://inner.example:${server.port}/`)
      assert.equal(await response.text(), 'ok', allow)
    }
  })

  it('does not admit another port, host or subnet', async (t) => {
    const server = await serve(t, ok)
    for (const allow of [
      'other.example',
      'inner.example:1',
      '127.0.0.1:1',
      '127.0.0.2',
      '127.0.1.0/24',
      '::1',
    ]) {
      const fetch = guarded(t, allow, dns('127.0.0.1'))
      await assert.rejects(fetch(`http://inner.example:${server.port}/`), refused('address_refused'), allow)
    }
    assert.equal(server.connections(), 0)
  })

  it('admits one name without admitting another that shares its address and port', async (t) => {
    const server = await serve(t, ok)
    const fetch = guarded(t, 'inner.example', dns('127.0.0.1'))
    await (await fetch(`http://inner.example:${server.port}/`)).text()
    await assert.rejects(
      fetch(`http://other.example:${server.port}/`),
      refused('address_refused', 'other.example'),
    )
    assert.equal(server.connections(), 1)
  })
})

describe('redirects', () => {
  const redirectTo =
    (status: number, location: string): RequestListener =>
    (_request, response) =>
      response.writeHead(status, { location }).end('moved')

  for (const target of [
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0251.0376.0251.0376/',
    'http://0xa9.0xfe.0xa9.0xfe/',
    'http://[::ffff:169.254.169.254]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[2002:a9fe:a9fe::]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://[fd00:ec2::254]/',
    '//169.254.169.254/latest/',
  ]) {
    it(`are not followed to ${target}`, async (t) => {
      const server = await serve(t, redirectTo(302, target))
      await assert.rejects(
        guarded(t, '127.0.0.1')(`http://127.0.0.1:${server.port}/`),
        refused('address_refused'),
      )
    })
  }

  it('are not followed to loopback', async (t) => {
    const victim = await serve(t, ok)
    const server = await serve(t, redirectTo(302, `http://127.0.0.1:${victim.port}/`))
    const fetch = guarded(t, `127.0.0.1:${server.port}`)
    await assert.rejects(fetch(`http://127.0.0.1:${server.port}/`), refused('address_refused', '127.0.0.1'))
    assert.equal(victim.connections(), 0)
  })

  for (const location of [
    'file:///etc/passwd',
    'ftp://a.example/',
    'http://user:secret@127.0.0.1/',
    'http://[',
  ]) {
    it(`are not followed to ${location}`, async (t) => {
      const server = await serve(t, redirectTo(302, location))
      await assert.rejects(guarded(t, '127.0.0.1')(`http://127.0.0.1:${server.port}/`), (error: JobError) => {
        assert.ok(!error.message.includes('secret'))
        return refused('url_refused')(error)
      })
    })
  }

  it('end after five hops', async (t) => {
    let requests = 0
    const server = await serve(t, (request, response) => {
      requests += 1
      const left = Number(request.url?.slice(1))
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` })
      response.end('arrived')
    })
    const fetch = guarded(t, '127.0.0.1')
    const response = await fetch(`http://127.0.0.1:${server.port}/5`)
    assert.deepEqual(
      [await response.text(), response.url, requests],
      ['arrived', `http://127.0.0.1:${server.port}/0`, 6],
    )
    await assert.rejects(
      fetch(`http://127.0.0.1:${server.port}/6`),
      refused('too_many_redirects', '127.0.0.1'),
    )
    assert.equal(requests, 12)
  })

  it('in a loop are given up', async (t) => {
    const server = await serve(t, redirectTo(307, '/again'))
    await assert.rejects(
      guarded(t, '127.0.0.1')(`http://127.0.0.1:${server.port}/`),
      refused('too_many_redirects'),
    )
  })

  it('are handed over with `manual`, and without a Location', async (t) => {
    const server = await serve(t, (request, response) =>
      request.url === '/bare'
        ? response.writeHead(302).end()
        : redirectTo(302, 'http://10.0.0.1/')(request, response),
    )
    const fetch = guarded(t, '127.0.0.1')
    const manual = await fetch(`http://127.0.0.1:${server.port}/`, { redirect: 'manual' })
    assert.deepEqual([manual.status, manual.headers.get('location')], [302, 'http://10.0.0.1/'])
    assert.equal((await fetch(`http://127.0.0.1:${server.port}/bare`)).status, 302)
  })

  it('read a raw UTF-8 Location', async (t) => {
    const server = await listen(
      t,
      createTcpServer((socket) =>
        socket.once('data', (head) => {
          const moved = head.includes('GET / ')
          socket.end(moved ? 'HTTP/1.1 302 Found\r\nLocation: /bücher\r\n\r\n' : 'HTTP/1.1 200 OK\r\n\r\n')
        }),
      ),
    )
    const response = await guarded(t, '127.0.0.1')(`http://127.0.0.1:${server.port}/`)
    assert.equal(new URL(response.url).pathname, '/b%C3%BCcher')
  })

  const echo: RequestListener = async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.end(JSON.stringify({ method: request.method, body, headers: request.headers }))
  }
  type Echo = { method: string; body: string; headers: Record<string, string> }

  const methods: [number, string, string, string][] = [
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [301, 'PUT', 'PUT', 'data'],
    [302, 'DELETE', 'DELETE', 'data'],
    [307, 'POST', 'POST', 'data'],
    [308, 'POST', 'POST', 'data'],
  ]
  for (const [status, method, next, body] of methods) {
    it(`with ${status} turn ${method} into ${next} ${body ? 'with' : 'without'} its body`, async (t) => {
      const server = await serve(t, (request, response) =>
        request.url === '/' ? redirectTo(status, '/next')(request, response) : echo(request, response),
      )
      const headers = { 'Content-Type': 'text/x-test', 'X-Keep': 'kept' }
      const init = { method, headers, body: 'data' }
      const response = await guarded(t, '127.0.0.1')(`http://127.0.0.1:${server.port}/`, init)
      const seen = (await response.json()) as Echo
      assert.deepEqual([seen.method, seen.body, seen.headers['x-keep']], [next, body, 'kept'])
      assert.equal(seen.headers['content-type'], body ? 'text/x-test' : undefined)
    })
  }

  it('keep all headers within an origin, and drop all but harmless ones for good across origins', async (t) => {
    const far = await serve(t, (request, response) =>
      request.url === '/back'
        ? redirectTo(302, `http://127.0.0.1:${near.port}/end`)(request, response)
        : echo(request, response),
    )
    const near: Listening = await serve(t, (request, response) => {
      if (request.url === '/end') return echo(request, response)
      const target = {
        '/same': '/end',
        '/far': `http://127.0.0.1:${far.port}/`,
        '/round': `http://127.0.0.1:${far.port}/back`,
      }
      return redirectTo(307, target[request.url as keyof typeof target])(request, response)
    })
    const fetch = guarded(t, '127.0.0.1')
    const harmless = {
      accept: 'text/csv',
      'accept-language': 'de',
      'content-type': 'text/x-test',
      'idempotency-key': 'batch-1',
      range: 'bytes=0-9',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'user-agent': 'test',
    }
    const secret = Object.fromEntries(
      [
        'authorization',
        'cookie',
        'proxy-authorization',
        'x-api-key',
        'x-auth-token',
        'private-token',
        'x-any',
      ].map((name) => [name, 's3cret']),
    )
    const seen = async (path: string) => {
      const init = { method: 'PUT', headers: { ...harmless, ...secret }, body: 'data' }
      const { headers, body } = (await (
        await fetch(`http://127.0.0.1:${near.port}${path}`, init)
      ).json()) as Echo
      assert.equal(body, 'data')
      return Object.fromEntries(
        Object.entries(headers).filter(([name]) => name in harmless || name in secret),
      )
    }
    assert.deepEqual(await seen('/same'), { ...harmless, ...secret })
    assert.deepEqual(await seen('/far'), harmless)
    assert.deepEqual(await seen('/round'), harmless)
  })
})

describe('https', () => {
  const identity = selfSigned('secure.example')
  before(() => setDefaultCACertificates([...getCACertificates('default'), identity.cert]))
  const secure = (t: TestContext, listener: RequestListener) =>
    listen(t, createHttpsServer(identity, listener))

  it('verifies the name it was asked for', async (t) => {
    const server = await secure(t, ok)
    const fetch = guarded(t, '127.0.0.1', dns('127.0.0.1'))
    assert.equal(await (await fetch(`https://secure.example:${server.port}/`)).text(), 'ok')
    await assert.rejects(
      fetch(`https://other.example:${server.port}/`),
      refused('network_error', 'other.example', 'ERR_TLS_CERT_ALTNAME_INVALID'),
    )
  })

  it('never redirects down to http', async (t) => {
    const plain = await serve(t, ok)
    const server = await secure(t, (_request, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${plain.port}/` }).end(),
    )
    const fetch = guarded(t, '127.0.0.1', dns('127.0.0.1'))
    await assert.rejects(
      fetch(`https://secure.example:${server.port}/`),
      refused('url_refused', 'https: to http:'),
    )
    assert.equal(plain.connections(), 0)
  })

  it('fails as a network error against a server without TLS, and leaves no socket behind', async (t) => {
    const server = await serve(t, ok)
    await assert.rejects(
      guarded(t, '127.0.0.1')(`https://127.0.0.1:${server.port}/`),
      refused('network_error', 'ERR_SSL'),
    )
    await server.closed()
  })
})

describe('a request', () => {
  for (const url of [
    'ftp://a.example/',
    'file:///etc/passwd',
    'data:text/plain,x',
    'https://u:secret@a.example/',
    'nonsense',
  ]) {
    it(`to ${url} is refused before any lookup`, async (t) => {
      const fetch = guarded(t, '', () => assert.fail('looked up'))
      await assert.rejects(fetch(url), (error: JobError) => {
        assert.ok(!error.message.includes('secret'))
        return refused('url_refused')(error)
      })
    })
  }

  it('reuses its sockets, and looks each up and checks it when it is made', async (t) => {
    const server = await serve(t, ok)
    let lookups = 0
    const fetch = guarded(t, '127.0.0.1', async () => {
      lookups += 1
      return [{ address: '127.0.0.1' }]
    })
    for (let i = 0; i < 10; i += 1) await (await fetch(`http://inner.example:${server.port}/`)).text()
    // undici may take a second socket while the first is not yet marked free.
    assert.ok(server.connections() <= 2, `${server.connections()} connections`)
    assert.equal(lookups, server.connections())
  })

  it('fails as a retryable network error that names host and system code', async (t) => {
    const { port } = await serve(t, (request) => request.socket.resetAndDestroy())
    const fetch = guarded(t, '127.0.0.1')
    await assert.rejects(
      fetch(`http://127.0.0.1:${port}/`),
      refused('network_error', `127.0.0.1:${port}`, 'ECONNRESET'),
    )
    const closed = createTcpServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const free = (closed.address() as AddressInfo).port
    closed.close()
    await once(closed, 'close')
    await assert.rejects(
      fetch(`http://127.0.0.1:${free}/`),
      refused('network_error', `127.0.0.1:${free}`, 'ECONNREFUSED'),
    )
  })

  it('to an allowed host that does not respond does not reveal its address', async (t) => {
    const server = await serve(t, (request) => request.socket.resetAndDestroy())
    const connectTo = (...addresses: string[]) =>
      guarded(t, '127.0.0.0/8', dns(...addresses))(`http://inner.example:${server.port}/`)
    const unreachable = (code: string) => refused('network_error', `inner.example:${server.port}`, code)
    // 127.0.0.2 and 127.0.0.3 belong to this machine, and nothing listens there.
    await assert.rejects(connectTo('127.0.0.2'), hides('127.0.0', unreachable('ECONNREFUSED')))
    await assert.rejects(connectTo('127.0.0.2', '127.0.0.3'), hides('127.0.0', unreachable('ECONNREFUSED')))
    await assert.rejects(connectTo('127.0.0.1'), hides('127.0.0', unreachable('ECONNRESET')))
  })

  it('to a port that fetch keeps away from is refused for good', async (t) => {
    await assert.rejects(
      guarded(t, '127.0.0.1')('http://127.0.0.1:6000/'),
      refused('url_refused', '127.0.0.1:6000'),
    )
  })

  it('to a name without an address fails with ENOTFOUND', async (t) => {
    const missing = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' })
    for (const lookup of [dns(), () => Promise.reject(missing)]) {
      await assert.rejects(
        guarded(t, '', lookup)('http://gone.example/'),
        refused('network_error', 'gone.example', 'ENOTFOUND'),
      )
    }
  })

  it('with a malformed header is the mistake of its caller, not of the network', async (t) => {
    await assert.rejects(guarded(t, '')('http://a.example/', { headers: { 'a b': 'c' } }), TypeError)
  })

  it('rejects with the reason of its signal, before and while it runs', async (t) => {
    const controller = new AbortController()
    const reason = new Error('lease lost')
    const server = await serve(t, () => controller.abort(reason))
    const fetch = guarded(t, '127.0.0.1')
    const attempt = () => fetch(`http://127.0.0.1:${server.port}/`, { signal: controller.signal })
    await assert.rejects(attempt(), (error) => error === reason)
    await assert.rejects(attempt(), (error) => error === reason)
    assert.equal(server.connections(), 1)
  })

  it('is cut off by close, which may be called twice', async (t) => {
    const arrived = Promise.withResolvers<void>()
    const server = await serve(t, () => arrived.resolve())
    const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
    const pending = assert.rejects(guard.fetch(`http://127.0.0.1:${server.port}/`), refused('network_error'))
    await arrived.promise
    await Promise.all([guard.close(), guard.close()])
    await guard.close()
    await pending
    await server.closed()
  })
})

/** A self-signed certificate, made per run so that none expires and no key is stored. DER by hand. */
function selfSigned(name: string): { key: string; cert: string } {
  const der = (tag: number, ...parts: Uint8Array[]): Buffer => {
    const body = Buffer.concat(parts)
    const size = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255]
    return Buffer.concat([Buffer.from([tag, ...size]), body])
  }
  const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts)
  const hex = (text: string) => Buffer.from(text, 'hex')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaSha256 = sequence(hex('06082a8648ce3d040302'))
  const subject = sequence(der(0x31, sequence(hex('0603550403'), der(0x0c, Buffer.from(name)))))
  const validity = sequence(
    der(0x17, Buffer.from('200101000000Z')),
    der(0x18, Buffer.from('29991231235959Z')),
  )
  const altName = sequence(hex('0603551d11'), der(0x04, sequence(der(0x82, Buffer.from(name)))))
  const version3 = hex('a003020102')
  const serial = hex('020101')
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const extensions = der(0xa3, sequence(altName))
  const toSign = sequence(version3, serial, ecdsaSha256, subject, validity, subject, spki, extensions)
  const signature = der(0x03, Buffer.from([0]), sign('sha256', toSign, privateKey))
  const base64 = sequence(toSign, ecdsaSha256, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  }
}
