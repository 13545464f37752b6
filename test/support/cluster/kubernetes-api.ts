import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { certificateOf } from './certificates.ts'

export type FakePod = {
  name: string
  uid: string
  labels: Record<string, string>
  annotations?: Record<string, string>
  deletionTimestamp?: string
}

export type KubernetesApi = {
  readonly url: string
  /** By name. Tests put pods in and look at their annotations. */
  readonly pods: Map<string, FakePod>
  /** `data` of extension-apiserver-authentication. */
  readonly authentication: Record<string, string>
  /** Each request, as `GET /path?query`. */
  readonly requests: string[]
  /** Tokens that are not this one are refused. */
  token: string
  /** How the next requests are answered that `match`, each of these once. */
  fail(match: RegExp, ...answers: { status: number; headers?: Record<string, string> }[]): void
  stop(): Promise<void>
}

type Answer = { status: number; body: object; headers?: Record<string, string> }

const PODS = '/api/v1/namespaces/smartqueue/pods'
const AUTHENTICATION = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication'
const COST = 'controller.kubernetes.io/pod-deletion-cost'

/**
 * As much of Kubernetes' API as SmartQueue uses, and as strict: rights to anything else are refused, and so is what does not
 * fit its types.
 */
export const startKubernetesApi = async (): Promise<KubernetesApi> => {
  const failures: { match: RegExp; answer: { status: number; headers?: Record<string, string> } }[] = []
  const pods: KubernetesApi['pods'] = new Map()

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const body = await textOf(request)
    const asked = `${request.method} ${request.url}`
    api.requests.push(asked)
    if (request.headers.authorization !== `Bearer ${api.token}`) return status(401, 'Unauthorized')
    const failing = failures.findIndex(({ match }) => match.test(asked))
    if (failing >= 0) {
      const [failed] = failures.splice(failing, 1)
      if (failed) return { ...status(failed.answer.status, 'as the test wants it'), ...failed.answer }
    }
    const url = new URL(request.url ?? '', 'https://kubernetes')
    if (request.method === 'GET' && url.pathname === PODS) return listPods(pods, url, request.headers.accept)
    if (request.method === 'GET' && url.pathname === AUTHENTICATION) {
      return { status: 200, body: { kind: 'ConfigMap', apiVersion: 'v1', data: api.authentication } }
    }
    const name = url.pathname.startsWith(`${PODS}/`) ? url.pathname.slice(PODS.length + 1) : ''
    if (request.method === 'PATCH' && name) return patchPod(pods, name, request.headers['content-type'], body)
    return status(403, `smartqueue cannot ${request.method} ${url.pathname}`)
  }

  const server = createServer(certificateOf('server'), (request, response) => {
    void answer(request).then((found) => send(response, found))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const api: KubernetesApi = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pods,
    authentication: {},
    requests: [],
    token: 'first-token',
    fail: (match, ...answers) => void failures.push(...answers.map((one) => ({ match, answer: one }))),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return api
}

const listPods = (pods: Map<string, FakePod>, url: URL, accept = ''): Answer => {
  const wanted = (url.searchParams.get('labelSelector') ?? '').split(',').map((label) => label.split('='))
  const found = [...pods.values()].filter(({ labels }) =>
    wanted.every(([key, value]) => labels[key ?? ''] === value),
  )
  const from = Number(url.searchParams.get('continue') ?? 0)
  const to = from + Number(url.searchParams.get('limit') ?? found.length)
  const metadata = { resourceVersion: '1', ...(to < found.length && { continue: String(to) }) }
  const items = found.slice(from, to).map((pod) => ({ metadata: { namespace: 'smartqueue', ...pod } }))
  if (!accept.includes('as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'))
    return status(406, 'ask for no more than metadata')
  const kind = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' }
  return { status: 200, body: { ...kind, metadata, items } }
}

const patchPod = (
  pods: Map<string, FakePod>,
  name: string,
  type: string | undefined,
  body: string,
): Answer => {
  if (type !== 'application/merge-patch+json') return status(415, `${type} is no patch`)
  const pod = pods.get(name)
  if (!pod) return status(404, `pods "${name}" not found`)
  const { metadata, ...others } = JSON.parse(body) as { metadata: Partial<FakePod> }
  const { uid, annotations = {}, ...rest } = metadata
  if (Object.keys({ ...others, ...rest }).length > 0) return status(422, 'only annotations may change')
  if (uid !== undefined && uid !== pod.uid) return status(409, 'the UID in the precondition does not match')
  for (const value of Object.values(annotations))
    if (typeof value !== 'string') return status(400, 'annotations are strings')
  const cost = annotations[COST]
  if (cost !== undefined && !(/^(0|-?[1-9]\d*)$/.test(cost) && Math.abs(Number(cost)) < 2 ** 31))
    return status(422, 'must be a 32bit integer')
  pods.set(name, { ...pod, annotations: { ...pod.annotations, ...annotations } })
  return { status: 200, body: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: pod } }
}

const status = (code: number, message: string): Answer => ({
  status: code,
  body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code },
})

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const send = (response: ServerResponse, answer: Answer): void => {
  response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
  response.end(JSON.stringify(answer.body))
}
