import { generateKeyPairSync } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Query } from '../../db/query.ts'
import { startNeonGateway } from '../../worker-runtime/local/neon-gateway.ts'
import { asLogin, type TestLogin } from './database.ts'
import { startWorkerd } from './workerd-host.ts'

export type Edge = {
  readonly url: string
  readonly authKeys: { keys: Record<string, string>[] }
  /** A request to the functions; `json` is sent as the body, `token` as the bearer. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  /** Runs a statement as the owner of its database, past the functions. */
  seed(query: Query<unknown>): Promise<unknown>
  /** Has the stream of an organisation lose its memory, as when it hibernates. */
  evictStream(orgId: string): Promise<void>
  stop(): Promise<void>
}

export type RequestOptions = {
  json?: unknown
  token?: string
  body?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers as they come and assert on what they find
export type Answer = { status: number; headers: Headers; body: any; text: string }

/** The functions on real workerd, against a database, through a gateway of their own. */
export const startEdge = async (options: {
  databaseUrl: string
  login?: TestLogin | 'owner'
  main?: string
  bindings?: Record<string, string>
}): Promise<Edge> => {
  const gateway = await startNeonGateway({
    target:
      options.login === 'owner'
        ? options.databaseUrl
        : asLogin(options.databaseUrl, options.login ?? 'functions'),
  })
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const authKeys = { keys: [{ ...(jwk as Record<string, string>), kid: 'test' }] }
  const config = options.main ?? '../../wrangler.toml'
  const workerd = await startWorkerd({
    configPath: fileURLToPath(new URL(config, import.meta.url)),
    prebuilt: !options.main,
    vars: {
      DATABASE_URL: gateway.connectionString,
      NEON_GATEWAY: gateway.address,
      AUTH_KEYS: JSON.stringify(authKeys),
      SMARTQUEUE_REGISTRATION: 'open',
      SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'cf-connecting-ip',
      ...options.bindings,
    },
  })
  const owner = new pg.Pool({ connectionString: options.databaseUrl, max: 1, idleTimeoutMillis: 1_000 })
  owner.on('error', () => {})
  return {
    url: workerd.url.origin,
    authKeys,
    seed: ({ text, values }) => owner.query(text, [...values]),
    request: (method, path, request = {}) => send(new URL(path, workerd.url), method, request),
    evictStream: (name) => workerd.evict({ className: 'JobStream', name }),
    stop: async () => {
      await workerd.stop()
      await owner.end()
      await gateway.stop()
    },
  }
}

const send = async (url: URL, method: string, options: RequestOptions): Promise<Answer> => {
  const body = options.json === undefined ? options.body : JSON.stringify(options.json)
  const response = await fetch(url, {
    method,
    redirect: 'manual',
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(options.token && { authorization: `Bearer ${options.token}` }),
      ...options.headers,
    },
    ...(body !== undefined && { body }),
  })
  const type = response.headers.get('content-type') ?? ''
  // It has no end.
  if (type.startsWith('text/event-stream')) await response.body?.cancel()
  const text = response.bodyUsed ? '' : await response.text()
  const isJson = /[/+]json\b/.test(type)
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : undefined,
  }
}
