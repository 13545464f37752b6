import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
import type { SecureVersion, TLSSocket } from 'node:tls'
import { type CertifiedClient, caOf, certificateOf } from './certificates.ts'

type Options = {
  as?: CertifiedClient | undefined
  method?: string
  headers?: Record<string, string>
  sent?: string
  agent?: Agent
  maxVersion?: SecureVersion
}

type Answered = { status: number; type: string | undefined; body: unknown; serverName: string }
export type Asked = (path: string, options?: Options) => Promise<Answered>

/** Asks an aggregated API as the API server of the cluster does, unless told otherwise. Rejects if it is not let in. */
export const ask = (port: number, path: string, options: Options = {}): Promise<Answered> => {
  const { as, method = 'GET', headers, agent, maxVersion } = { as: 'front-proxy-client' as const, ...options }
  const servername = 'smartqueue-metrics-adapter.smartqueue.svc'
  const where = { host: '127.0.0.1', port, path, method, servername, ca: caOf('cluster-ca') }
  const { promise, resolve, reject } = Promise.withResolvers<Answered>()
  const sent = request({
    ...where,
    ...(as && certificateOf(as)),
    // At its usual level of security this side would not even offer an old protocol.
    ...(maxVersion && { maxVersion, minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    agent: agent ?? false,
    headers: {
      accept: 'application/json',
      'x-remote-user': 'system:kube-controller-manager',
      'content-length': String(options.sent?.length ?? 0),
      ...headers,
    },
  })
  sent.on('error', reject)
  sent.on('response', (response) => void readAnswer(response).then(resolve, reject))
  sent.end(options.sent)
  return promise
}

const readAnswer = async (response: IncomingMessage): Promise<Answered> => {
  const { CN } = (response.socket as TLSSocket).getPeerCertificate().subject
  let text = ''
  for await (const chunk of response) text += chunk
  const type = response.headers['content-type']
  return { status: response.statusCode ?? 0, type, body: JSON.parse(text), serverName: String(CN) }
}
