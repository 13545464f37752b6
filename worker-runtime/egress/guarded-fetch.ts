import type { LookupAddress } from 'node:dns'
import { lookup as systemLookup } from 'node:dns/promises'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { Agent, buildConnector, fetch, Headers, Request, type Response as UndiciResponse } from 'undici'
import { type GuardedFetch, type GuardedFetchInit, JobError } from '../handler-api.ts'
import { ALLOW_SETTING, type AllowList, isAllowed } from './address-guard.ts'

/**
 * `fetch` for jobs. The rule: no byte leaves on a socket whose peer the address guard has not passed.
 *
 * The guard stands in the connector, the one place where sockets are made: a literal is checked before
 * connecting; a name is resolved once, every answer is checked, and the very same answers are connected to,
 * so DNS that changes its mind between check and use gains nothing; the peer address is checked again
 * before TLS or HTTP starts. A pooled socket was checked when it was made and serves one origin only
 * (scheme, host and port), so keep-alive skips nothing. Redirects are followed here, hop by hop, and each
 * hop passes the same connector.
 */
export function createGuardedFetch({ allow, lookup = resolveAll }: GuardOptions): {
  fetch: GuardedFetch
  close(): Promise<void>
} {
  const dispatcher = new Agent({
    connect: createGuardedConnector({ allow, lookup }),
    // A job's own timeout arrives through its signal and may be longer than undici's five minutes.
    // This limit only frees the socket of a job without one.
    headersTimeout: ONE_HOUR_MS,
    bodyTimeout: ONE_HOUR_MS,
  })
  return {
    fetch: async (url, init = {}) => followRedirects(dispatcher, firstHop(url, init), init),
    // Not `Agent.close()`: that waits for every body, also for one that nobody reads any more.
    close: () => dispatcher.destroy(),
  }
}

export type GuardOptions = { readonly allow: AllowList; readonly lookup?: Lookup }

/** Every address that a name stands for. Tests pass their own to play DNS. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string }[]>

const ONE_HOUR_MS = 3_600_000
const MAX_REDIRECTS = 5

const resolveAll: Lookup = (hostname) => systemLookup(hostname, { all: true })

/** What one request sends; a redirect makes the next from it. */
type Hop = {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: string | Uint8Array | undefined
}

async function followRedirects(dispatcher: Agent, first: Hop, init: GuardedFetchInit): Promise<Response> {
  let hop = first
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(dispatcher, hop, init.signal)
    const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null
    // undici's Response is the class behind Node's global one; only the two type declarations differ.
    if (init.redirect === 'manual' || location === null) return response as unknown as Response
    await response.body?.cancel().catch(() => {})
    if (redirects === MAX_REDIRECTS) throw tooManyRedirects(first.url.host)
    hop = nextHop(hop, response.status, location)
  }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const tooManyRedirects = (host: string): JobError =>
  new JobError('too_many_redirects', `${host} redirects more than ${MAX_REDIRECTS} times`, {
    permanent: true,
  })

function firstHop(url: string | URL, init: GuardedFetchInit): Hop {
  return {
    url: checkedUrl(String(url)),
    method: init.method?.toUpperCase() ?? 'GET',
    headers: new Headers(init.headers),
    body: init.body,
  }
}

function nextHop(hop: Hop, status: number, location: string): Hop {
  // Header bytes arrive as Latin-1, but servers write a raw Location in UTF-8.
  const url = checkedUrl(Buffer.from(location, 'latin1').toString(), hop.url)
  if (hop.url.protocol === 'https:' && url.protocol === 'http:') {
    throw refusedUrl(`${hop.url.host} redirects from https: to http: on ${url.host}`)
  }
  const headers = url.origin === hop.url.origin ? new Headers(hop.headers) : harmless(hop.headers)
  if (!becomesGet(hop.method, status)) return { ...hop, url, headers }
  for (const name of ABOUT_BODY) headers.delete(name)
  return { url, method: 'GET', headers, body: undefined }
}

/**
 * Any header may carry a credential (`x-api-key`, `private-token`, …), so only those listed here are sent to
 * another origin.
 */
const harmless = (headers: Headers): Headers =>
  new Headers([...headers].filter(([name]) => HARMLESS.has(name)))

const HARMLESS: ReadonlySet<string> = new Set([
  ...['accept', 'accept-encoding', 'accept-language', 'content-encoding', 'content-language', 'content-type'],
  ...['idempotency-key', 'range', 'traceparent', 'user-agent'],
])

const ABOUT_BODY = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-language',
  'content-location',
]

function becomesGet(method: string, status: number): boolean {
  if (status === 303) return method !== 'HEAD'
  return method === 'POST' && (status === 301 || status === 302)
}

function checkedUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null) throw refusedUrl(base ? `${base.host} redirects to no valid URL` : 'The URL is not valid')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusedUrl(`Only http: and https: URLs are fetched, not ${url.protocol}`)
  }
  if (url.username !== '' || url.password !== '') {
    throw refusedUrl(`The URL on ${url.host} carries a user name or password; use the Authorization header`)
  }
  return url
}

const refusedUrl = (message: string): JobError => new JobError('url_refused', message, { permanent: true })

async function send(dispatcher: Agent, hop: Hop, signal?: AbortSignal): Promise<UndiciResponse> {
  // Outside the try: a malformed header or method is the caller's mistake and no network failure.
  const request = new Request(hop.url, {
    method: hop.method,
    headers: hop.headers,
    body: hop.body ?? null,
    redirect: 'manual',
    signal: signal ?? null,
  })
  try {
    return await fetch(request, { dispatcher })
  } catch (error) {
    signal?.throwIfAborted()
    throw asJobError(error, hop.url.host)
  }
}

/** undici wraps what went wrong as the cause of `TypeError: fetch failed`, a refusal of the guard included. */
function asJobError(error: unknown, host: string): JobError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof JobError) return cause
  if (cause instanceof Error && cause.message === 'bad port') {
    return refusedUrl(
      `Refused to connect to ${host}: fetch keeps away from ports of other protocols than HTTP.`,
    )
  }
  // Only the code, if there is one: system messages contain the address.
  const reason =
    cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? cause.message) : String(cause)
  return new JobError('network_error', `Could not reach ${host}: ${reason}`, { cause })
}

function createGuardedConnector(guard: Required<GuardOptions>): buildConnector.connector {
  const startTls = buildConnector({})
  return (options, callback) => {
    connectGuarded(options, guard, startTls).then(
      (socket) => callback(null, socket),
      (error) => callback(error, null),
    )
  }
}

async function connectGuarded(
  options: buildConnector.Options,
  { allow, lookup }: Required<GuardOptions>,
  startTls: buildConnector.connector,
): Promise<Socket> {
  const { hostname, protocol } = options
  const port = Number(options.port || (protocol === 'https:' ? 443 : 80))
  const check: Check = (address) => {
    if (!isAllowed({ hostname, port, address, allow })) throw refusedAddress(hostname, port)
  }
  // A socket does not look a literal up, so the lookup below never sees it.
  if (isIP(hostname) !== 0) check(hostname)
  const openTcp = buildConnector({ lookup: checkedLookup(lookup, check) })
  const socket = await connect(openTcp, { ...options, protocol: 'http:', port: String(port) })
  try {
    checkPeer(socket, check)
  } catch (error) {
    socket.destroy()
    throw error
  }
  return protocol === 'https:' ? connect(startTls, { ...options, httpSocket: socket }) : socket
}

/** Throws if the address may not be connected to. */
type Check = (address: string) => void

const connect = (connector: buildConnector.connector, options: buildConnector.Options): Promise<Socket> =>
  new Promise((resolve, reject) => {
    connector(options, (error, socket) => (error ? reject(error) : resolve(socket)))
  })

/** The socket's own lookup: it hands over the very addresses that it checked. */
function checkedLookup(lookup: Lookup, check: Check): LookupFunction {
  return (hostname, options, callback) => {
    resolveChecked(hostname, lookup, check).then(
      ([first, ...others]) => {
        if (options.all) callback(null, [first, ...others])
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, ''),
    )
  }
}

async function resolveChecked(hostname: string, lookup: Lookup, check: Check): Promise<Answers> {
  const answers = (await lookup(hostname)).map(({ address }) => ({ address, family: isIP(address) }))
  // One bad answer refuses the name: the socket tries them in turn, so each may be the one it uses.
  for (const { address } of answers) check(address)
  const [first, ...others] = answers
  if (first === undefined) throw systemError('ENOTFOUND')
  return [first, ...others]
}

type Answers = [LookupAddress, ...LookupAddress[]]

function checkPeer(socket: Socket, check: Check): void {
  // A peer that is already gone has no address: that is a lost connection, not a refusal.
  if (socket.remoteAddress === undefined) throw systemError('ECONNRESET')
  check(socket.remoteAddress)
}

const systemError = (code: string): Error => Object.assign(new Error(code), { code })

/** Omits the address: tenants read this message, and the address would reveal the operator's network. */
const refusedAddress = (hostname: string, port: number): JobError =>
  new JobError(
    'address_refused',
    `Refused to connect to ${hostname} port ${port}: its address is not public. ` +
      `An operator can permit it with ${ALLOW_SETTING}.`,
    { permanent: true },
  )
