/**
 * The local stand-in for Neon's proxy: SQL over HTTP, and a WebSocket tunnel for interactive sessions.
 * It always speaks to one configured server, and HTTP callers prove themselves with a secret of its own:
 * it is no open relay, and the edge functions never hold the credentials of the database.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { pipeline } from 'node:stream'
import pg from 'pg'
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws'
import { CONNECTION_TIMEOUT_MS } from '../../db/rules/timeouts.ts'

export type NeonGateway = {
  /** `127.0.0.1:<port>`, for `neonConfig.fetchEndpoint` and `neonConfig.wsProxy`. */
  readonly address: string
  /** What the edge functions use as DATABASE_URL: good for HTTP, where the gateway is the one who checks it. */
  readonly connectionString: string
  stop(): Promise<void>
}

export type NeonGatewayOptions = {
  /** A Postgres URL. `sslmode` holds for HTTP; the tunnel reaches plain TCP targets only. */
  readonly target: string
  readonly port?: number
  readonly maxConnections?: number
}

export const startNeonGateway = async (options: NeonGatewayOptions): Promise<NeonGateway> => {
  const target = new URL(options.target)
  const sessions = openSessions(options.target, options.maxConnections ?? 20)
  let connectionString = ''
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveTimeout: 65_000 }, (req, res) => {
    answer(req, sessions, connectionString)
      .then((reply) => send(res, reply))
      .catch(() => res.destroy()) // the caller hung up, or the result is too large for one answer
  })
  // Browsers name the page that asks: no page has business with the database.
  const verifyClient = ({ req }: { req: IncomingMessage }): boolean => req.headers.origin === undefined
  const tunnels = new WebSocketServer({ server, perMessageDeflate: false, verifyClient })
  tunnels.on('connection', (socket) => openTunnel(socket, target))
  // The server reports the same error.
  tunnels.on('error', () => {})
  await once(server.listen(options.port ?? 0, '127.0.0.1'), 'listening')
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  connectionString = `postgresql://smartqueue:${randomBytes(24).toString('base64url')}@${address}${target.pathname}`
  const shutDown = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of tunnels.clients) socket.terminate()
    server.closeAllConnections()
    await Promise.all([sessions.end(), closed])
  }
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= shutDown()
    return stopping
  }
  return { address, connectionString, stop }
}

type Reply = { readonly status: number; readonly body: unknown }

const send = (res: ServerResponse, { status, body }: Reply): void => {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.end(text)
}

const refusal = (code: string, message: string): Reply => ({
  status: 400,
  body: { severity: 'ERROR', code, message },
})

type Query = { query: string; params?: unknown[] }
type SqlRequest = Query | { queries: Query[] }

const isQuery = (value: unknown): value is Query =>
  isObject(value) &&
  typeof value.query === 'string' &&
  (value.params === undefined || Array.isArray(value.params))

const isSqlRequest = (value: unknown): value is SqlRequest =>
  isQuery(value) || (isObject(value) && Array.isArray(value.queries) && value.queries.every(isQuery))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const answer = async (req: IncomingMessage, sessions: Sessions, connectionString: string): Promise<Reply> => {
  const body = await readBody(req)
  const path = req.url?.split('?')[0]
  if (req.method !== 'POST' || path !== '/sql') return { status: 404, body: { message: 'not found' } }
  if (body === undefined) return { status: 413, body: { message: 'the request exceeds 10 MiB' } }
  if (!isSame(req.headers['neon-connection-string'], connectionString)) {
    return refusal('28P01', 'the connection string is not the one of this gateway')
  }
  const request = parseJson(body)
  if (!isSqlRequest(request))
    return refusal('22032', 'the body is not {query, params} or {queries: [...]} in JSON')
  const batch = beginStatement(req.headers)
  if (batch === undefined) return refusal('22023', 'unknown Neon-Batch-Isolation-Level')
  const run = runnerFor(req.headers)
  return sessions.use(async (client) => {
    // The caller was told that the request failed, so it must not be executed later.
    if (req.socket.destroyed) return {}
    if (!('queries' in request)) return run(client, request, nameOf(request.query))
    await client.query(batch)
    const results: unknown[] = []
    for (const query of request.queries) results.push(await run(client, query))
    await client.query('commit')
    return { results }
  })
}

const MAX_BODY_BYTES = 10 * 1024 * 1024

// A body over the limit is dropped but read to its end: a socket closed earlier would hide the answer. Not with `for await`,
// which costs more than the query.
const readBody = (req: IncomingMessage): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let bytes = 0
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
      else chunks = []
    })
    req.on('end', () => resolve(bytes <= MAX_BODY_BYTES ? Buffer.concat(chunks).toString('utf8') : undefined))
    req.on('error', reject)
  })

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// The driver appends its application_name. Hashes have one length, so the comparison takes one time.
const isSame = (given: string | string[] | undefined, expected: string): boolean =>
  timingSafeEqual(digest(String(given).split('?')[0] ?? ''), digest(expected))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const ISOLATION_LEVELS = new Map([
  ['ReadUncommitted', ' isolation level read uncommitted'],
  ['ReadCommitted', ' isolation level read committed'],
  ['RepeatableRead', ' isolation level repeatable read'],
  ['Serializable', ' isolation level serializable'],
  ['', ''],
])

const beginStatement = (headers: IncomingHttpHeaders): string | undefined => {
  const isolation = ISOLATION_LEVELS.get(String(headers['neon-batch-isolation-level'] ?? ''))
  if (isolation === undefined) return undefined
  const readOnly = headers['neon-batch-read-only'] === 'true' ? ' read only' : ''
  const deferrable = headers['neon-batch-deferrable'] === 'true' ? ' deferrable' : ''
  return `begin${isolation}${readOnly}${deferrable}`
}

/** With a name, the statement is prepared and kept by the connection. */
type Run = (client: pg.ClientBase, query: Query, name?: string) => Promise<object>

/** Limit of prepared statements. SmartQueue has a few hundred; beyond the limit, statements run unprepared. */
const MAX_PREPARED = 1_000
const prepared = new Map<string, string>()
let names = 0

const nameOf = (text: string): string | undefined => {
  const known = prepared.get(text)
  if (known !== undefined || prepared.size === MAX_PREPARED) return known
  const name = `gateway-${++names}`
  prepared.set(text, name)
  return name
}

/** A migration has changed what the statement returns. The statement was not executed. */
const isStale = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'

// The driver asks for the text of Postgres in arrays and parses it itself, which makes HTTP equal to TCP.
const runnerFor = (headers: IncomingHttpHeaders): Run => {
  const { BOOL, INT2, INT4, FLOAT4, FLOAT8, JSON: PG_JSON, JSONB } = pg.types.builtins
  const raw = headers['neon-raw-text-output'] === 'true'
  const parsed: number[] = raw ? [] : [BOOL, INT2, INT4, FLOAT4, FLOAT8, PG_JSON, JSONB]
  const getTypeParser = (type: number) =>
    parsed.includes(type) ? pg.types.getTypeParser(type) : (text: string) => text
  const arrays = headers['neon-array-mode'] === 'true'
  return async (client, { query, params = [] }, name) => {
    // Extended also without parameters, as Neon does it: one statement a query.
    const config = { text: query, values: params, queryMode: 'extended', types: { getTypeParser } }
    const send = (options: object): Promise<pg.QueryResult> =>
      client.query({ ...config, ...options, ...(arrays && { rowMode: 'array' }) })
    const { fields, rows, rowCount, command } = await send({ name }).catch((error: unknown) => {
      if (name === undefined || !isStale(error)) throw error
      prepared.delete(query)
      return send({})
    })
    // The driver reads only these two properties of a field.
    const named = fields.map(({ name, dataTypeID }) => ({ name, dataTypeID }))
    return { fields: named, rows, rowCount, command, rowAsArray: arrays }
  }
}

type Work = (client: pg.PoolClient) => Promise<unknown>

type Sessions = {
  /** Runs the work on a pooled connection. Whatever goes wrong becomes a reply. */
  use(work: Work): Promise<Reply>
  end(): Promise<void>
}

const openSessions = (connectionString: string, max: number): Sessions => {
  const timeouts = { connectionTimeoutMillis: CONNECTION_TIMEOUT_MS, idleTimeoutMillis: 30_000 }
  const pool = new pg.Pool({ connectionString, max, ...timeouts, fallback_application_name: 'neon-gateway' })
  const busy = new Set<pg.PoolClient>()
  // A server that goes away ends idle connections too; the pool has dropped them by the time it says so.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  // Async, because a target that pg cannot use makes connect() throw instead of reject.
  const checkOut = async (): Promise<pg.PoolClient> => pool.connect()
  const use: Sessions['use'] = async (work) => {
    const client = await checkOut().catch(toError)
    if (client instanceof Error) return connectionFailure(NO_CONNECTION, client)
    busy.add(client)
    const { reply, broken } = await settle(client, work)
    busy.delete(client)
    // A lone `begin` leaves its transaction open, and the next caller must not land in it.
    client.release(broken || isInTransaction(client))
    return reply
  }
  const end = async (): Promise<void> => {
    for (const client of busy) client.end().catch(() => {})
    await pool.end()
  }
  return { use, end }
}

const toError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)))

const settle = async (client: pg.PoolClient, work: Work): Promise<{ reply: Reply; broken: boolean }> => {
  try {
    return { reply: { status: 200, body: await work(client) }, broken: false }
  } catch (error) {
    if (!(error instanceof pg.DatabaseError))
      return { reply: connectionFailure(CONNECTION_LOST, toError(error)), broken: true }
    // FATAL ends the session: its connection is about to close.
    const broken = error.severity !== 'ERROR'
    if (!broken && isInTransaction(client)) await client.query('rollback').catch(() => {})
    return { reply: statementFailure(error), broken }
  }
}

const isInTransaction = (client: pg.PoolClient): boolean => client.getTransactionStatus() !== 'I'

/** Nothing was sent to Postgres. */
const NO_CONNECTION = '08001'
/** It is unknown whether the transaction was committed. */
const CONNECTION_LOST = '08006'

// The code and not the message, which may name the account of the database.
const connectionFailure = (sqlstate: string, error: Error & { code?: string }): Reply =>
  refusal(sqlstate, `the connection to Postgres failed: ${error.code ?? error.message}`)

const statementFailure = (error: pg.DatabaseError): Reply => {
  const { message, severity, code, detail, hint, position, internalPosition, internalQuery, where } = error
  const { schema, table, column, dataType, constraint, file, line, routine } = error
  const place = { position, internalPosition, internalQuery, where, file, line, routine }
  const subject = { schema, table, column, dataType, constraint }
  return { status: 400, body: { message, severity, code, detail, hint, ...place, ...subject } }
}

// Bytes in both directions, whatever the path: the client speaks to Postgres itself, with the database's own
// credentials. Streams bring the backpressure; each side takes the other with it when it ends or breaks.
const openTunnel = (socket: WebSocket, target: URL): void => {
  const host = target.hostname.replace(/^\[|\]$/g, '')
  const upstream = connect({ host, port: Number(target.port || 5432), noDelay: true, keepAlive: true })
  const client = createWebSocketStream(socket)
  pipeline(client, upstream, client, () => {})
  // Not only half closed: a backend in a long statement would hold the socket until it ends.
  socket.once('close', () => upstream.destroySoon())
}
