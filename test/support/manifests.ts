import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildFolder, buildInline, type Kustomization, type Manifest } from './kustomize.ts'

export const K8S = fileURLToPath(new URL('../../k8s', import.meta.url))

/** What an operator could apply: the overlays, and each way to scale with all other components. */
export const builds = (): [name: string, manifests: Manifest[]][] => [
  ...OVERLAYS.map((name): [string, Manifest[]] => [name, buildFolder(join(K8S, 'overlays', name))]),
  ...SCALERS.map((scaler): [string, Manifest[]] => [
    `base with ${scaler}`,
    buildInline(K8S, withScaler(scaler)),
  ]),
]

export const OVERLAYS = readdirSync(join(K8S, 'overlays'))
const COMPONENTS = readdirSync(join(K8S, 'components'))
/** Interchangeable. */
export const SCALERS = ['keda', 'hpa']

export const withScaler = (scaler: string): Kustomization => ({
  resources: ['base'],
  components: COMPONENTS.filter((name) => name === scaler || !SCALERS.includes(name)).map(
    (name) => `components/${name}`,
  ),
  images: [{ name: 'smartqueue', newName: 'ghcr.io/smartqueue/smartqueue', newTag: '0.8.0' }],
})

export type Probe = {
  httpGet?: { path: string; port: string | number }
  exec?: { command: string[] }
  periodSeconds?: number
  failureThreshold?: number
}

type Reference = { name: string; key: string; optional?: boolean }

export type Container = {
  name: string
  image: string
  args?: string[]
  env?: {
    name: string
    value?: string
    valueFrom?: { secretKeyRef?: Reference; configMapKeyRef?: Reference }
  }[]
  envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[]
  ports?: { name: string; containerPort: number }[]
  startupProbe?: Probe
  readinessProbe?: Probe
  livenessProbe?: Probe
  lifecycle?: { preStop?: { sleep?: { seconds: number } } }
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
  securityContext?: Record<string, unknown> & { capabilities?: { drop?: string[]; add?: string[] } }
  volumeMounts?: { name: string; mountPath: string }[]
}

export type PodSpec = {
  serviceAccountName?: string
  automountServiceAccountToken?: boolean
  enableServiceLinks?: boolean
  terminationGracePeriodSeconds?: number
  securityContext?: Record<string, unknown> & { seccompProfile?: { type: string } }
  initContainers?: Container[]
  containers: Container[]
  volumes?: ({ name: string } & Record<string, unknown>)[]
  topologySpreadConstraints?: { labelSelector: { matchLabels: Record<string, string> } }[]
}

export type Workload = { owner: Manifest; labels: Record<string, string>; pod: PodSpec }

/** Everything that makes pods. */
export const workloads = (manifests: Manifest[]): Workload[] =>
  manifests.flatMap((owner) => {
    const { template } = (owner.spec ?? {}) as {
      template?: { metadata?: { labels?: Record<string, string> }; spec?: PodSpec }
    }
    return template?.spec?.containers
      ? [{ owner, labels: template.metadata?.labels ?? {}, pod: template.spec }]
      : []
  })

export const containersOf = ({ pod }: Workload): Container[] => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
]

export const find = (manifests: Manifest[], kind: string, name: string): Manifest | undefined =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name)

export const workloadOf = (manifests: Manifest[], name: string): Workload => {
  const found = workloads(manifests).find(({ owner }) => owner.metadata.name === name)
  if (!found) throw new Error(`Nothing makes pods by the name of ${name}`)
  return found
}

/** As the pod gets them: what it names itself counts before what it takes from elsewhere. */
export const environmentOf = (
  manifests: Manifest[],
  container: Container,
): Map<string, string | undefined> => {
  const shared = (container.envFrom ?? []).flatMap(({ configMapRef }) =>
    Object.entries(find(manifests, 'ConfigMap', configMapRef?.name ?? '')?.data ?? {}),
  ) as [string, string][]
  return new Map<string, string | undefined>([
    ...shared,
    ...(container.env ?? []).map(({ name, value }): [string, string | undefined] => [name, value]),
  ])
}

/** `4Gi` in MiB. */
export const mebibytes = (quantity: string | undefined): number => {
  const [, number = '', unit = ''] = /^(\d+)(Mi|Gi)$/.exec(quantity ?? '') ?? []
  if (!number) throw new Error(`${quantity} is no quantity in Mi or Gi`)
  return Number(number) * (unit === 'Gi' ? 1024 : 1)
}

export type Selector = {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values: string[] }[]
}

/** By which a manifest selects pods. */
export const selectorOf = ({ kind, spec }: Manifest): Selector => {
  const { selector = {}, podSelector = {} } = spec as { selector?: Selector; podSelector?: Selector }
  if (kind === 'NetworkPolicy') return podSelector
  return kind === 'Service' ? { matchLabels: selector as Record<string, string> } : selector
}

export const isSelected = (labels: Record<string, string>, selector: Selector): boolean =>
  Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
  (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    if (operator !== 'In') throw new Error(`${operator} is not known here`)
    return values.includes(labels[key] ?? '')
  })
