import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SETTINGS } from '../../worker-runtime/config.ts'
import { FRUGAL_MALLOC } from '../../worker-runtime/local/worker-process.ts'
import { type Manifest, splitImage } from '../support/kustomize.ts'
import {
  builds,
  containersOf,
  environmentOf,
  find,
  isSelected,
  selectorOf,
  type Workload,
  workloads,
} from '../support/manifests.ts'

const CLUSTER_SCOPED = ['Namespace', 'ClusterRole', 'ClusterRoleBinding', 'APIService']
/** The only one: it lets the adapter read whom the API server is known by. */
const ELSEWHERE = ['kube-system RoleBinding smartqueue-metrics-adapter-authentication']

/** What the processes of each answer on the port of probes. */
const routesIn = (file: string): string[] =>
  [
    ...readFileSync(new URL(`../../worker-runtime/${file}`, import.meta.url), 'utf8').matchAll(
      /^ *'(\/\w+)': /gm,
    ),
  ].flatMap(([, route]) => route ?? [])

const ROUTES: Record<string, string[]> = {
  'smartqueue-worker': routesIn('http/worker-status.ts'),
  'smartqueue-controller': routesIn('controller/controller.ts'),
  'smartqueue-metrics-adapter': routesIn('adapter/adapter.ts'),
}

/** Secrets that no kustomization makes; docs/operations.md says who does. */
const GIVEN_SECRETS: Record<string, string[]> = {
  'smartqueue-database': ['DATABASE_URL', 'CONTROLLER_DATABASE_URL', 'MIGRATION_DATABASE_URL'],
  'smartqueue-connections': ['SMARTQUEUE_CONNECTIONS'],
  'smartqueue-tracing': ['OTEL_EXPORTER_OTLP_HEADERS'],
}

for (const [name, manifests] of builds()) {
  test(`${name}: everything is in the namespace smartqueue that can be in one`, () => {
    for (const { kind, metadata } of manifests) {
      if (CLUSTER_SCOPED.includes(kind))
        assert.equal(metadata.namespace, undefined, `${kind} ${metadata.name}`)
      else if (!ELSEWHERE.includes(`${metadata.namespace} ${kind} ${metadata.name}`))
        assert.equal(metadata.namespace, 'smartqueue', `${kind} ${metadata.name}`)
      assert.equal(metadata.labels?.['app.kubernetes.io/part-of'], 'smartqueue', `${kind} ${metadata.name}`)
    }
  })

  test(`${name}: selectors select the pods that they mean`, () => {
    const pods = workloads(manifests)
    for (const { owner } of pods) {
      // A Job selects by a label of its own, which Kubernetes makes.
      if (owner.kind === 'Job') continue
      const chosen = pods.filter(({ labels }) => isSelected(labels, selectorOf(owner)))
      assert.deepEqual(namesOf(chosen), [owner.metadata.name], owner.kind)
    }
    for (const spread of pods.flatMap(({ labels, pod }) =>
      (pod.topologySpreadConstraints ?? []).map((one) => ({ labels, one })),
    ))
      assert.ok(isSelected(spread.labels, spread.one.labelSelector))
    for (const one of manifests.filter(({ kind }) => ['Service', 'PodDisruptionBudget'].includes(kind))) {
      const chosen = pods.filter(({ labels }) => isSelected(labels, selectorOf(one)))
      assert.deepEqual(namesOf(chosen), [one.metadata.name], one.kind)
    }
    for (const { kind, metadata, spec } of manifests)
      if (kind === 'PodDisruptionBudget')
        assert.deepEqual(
          { ...(spec as object), selector: undefined },
          { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: undefined },
          `${metadata.name}: no node is kept from being drained`,
        )
    for (const policy of manifests.filter(({ kind }) => kind === 'NetworkPolicy'))
      assert.ok(
        pods.some(({ labels }) => isSelected(labels, selectorOf(policy))),
        policy.metadata.name,
      )
  })

  test(`${name}: whatever is named is there`, () => {
    const isThere = (kind: string, it: string): void => assert.ok(find(manifests, kind, it), `${kind} ${it}`)
    for (const workload of workloads(manifests)) {
      isThere('ServiceAccount', workload.pod.serviceAccountName ?? '')
      for (const [secret, key] of secretsOf(workload)) {
        const made = find(manifests, 'Secret', secret)
        if (made) assert.ok(key in (made.data as object), `${secret} has no ${key}`)
        else assert.ok(GIVEN_SECRETS[secret]?.includes(key), `${secret} ${key} is made by nobody`)
      }
      for (const container of containersOf(workload)) {
        for (const { configMapRef } of container.envFrom ?? []) isThere('ConfigMap', configMapRef?.name ?? '')
        const volumes = (workload.pod.volumes ?? []).map((volume) => volume.name)
        const claims =
          (workload.owner.spec as { volumeClaimTemplates?: Manifest[] }).volumeClaimTemplates ?? []
        for (const mount of container.volumeMounts ?? [])
          assert.ok(
            [...volumes, ...claims.map(({ metadata }) => metadata.name)].includes(mount.name),
            mount.name,
          )
      }
    }
    for (const { kind, spec, ...rest } of manifests as unknown as Referrer[]) {
      if (spec?.scaleTargetRef) isThere('Deployment', spec.scaleTargetRef.name)
      if (kind === 'APIService') isThere('Service', spec?.service?.name ?? '')
      if (spec?.issuerRef) isThere('Issuer', spec.issuerRef.name)
      if (rest.roleRef && rest.roleRef.name !== 'extension-apiserver-authentication-reader')
        isThere(rest.roleRef.kind, rest.roleRef.name)
      for (const { name: account, namespace } of rest.subjects ?? [])
        if (namespace === 'smartqueue') isThere('ServiceAccount', account)
    }
  })

  test(`${name}: images are pinned, to one version of ours`, () => {
    const images = workloads(manifests)
      .flatMap(containersOf)
      .map(({ image }) => image)
    for (const image of images)
      assert.match(
        splitImage(image)[1],
        /^:\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$|^@sha256:[0-9a-f]{64}$/,
        image,
      )
    const ours = images.filter((image) => image.startsWith('ghcr.io/smartqueue/'))
    assert.equal(new Set(ours).size, 1, ours.join())
  })

  test(`${name}: probes and Services reach ports and routes that exist`, () => {
    for (const workload of workloads(manifests)) {
      const routes = ROUTES[workload.owner.metadata.name]
      for (const container of containersOf(workload)) {
        const ports = (container.ports ?? []).map((port) => port.name)
        for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
          if (!probe?.httpGet) continue
          assert.equal(probe.httpGet.port, 'metrics')
          assert.ok(ports.includes('metrics') && routes?.includes(probe.httpGet.path), probe.httpGet.path)
        }
        if (!routes) continue
        assert.equal(container.livenessProbe?.httpGet?.path, '/healthz', 'alive whatever the database does')
        const port = container.ports?.find((one) => one.name === 'metrics')?.containerPort
        assert.equal(environmentOf(manifests, container).get('SMARTQUEUE_METRICS_PORT'), String(port))
      }
    }
    for (const { kind, metadata, spec } of manifests as unknown as Referrer[]) {
      if (kind !== 'Service') continue
      const open = workloads(manifests).find(({ owner }) => owner.metadata.name === metadata.name)
      const names = open?.pod.containers.flatMap(({ ports = [] }) => ports.map((port) => port.name))
      for (const { targetPort } of spec?.ports ?? []) assert.ok(names?.includes(targetPort), targetPort)
    }
  })

  test(`${name}: every variable of our containers is a setting`, () => {
    for (const workload of workloads(manifests)) {
      assert.equal(
        workload.pod.enableServiceLinks,
        false,
        'else Kubernetes sets variables that look like settings',
      )
      if (workload.owner.metadata.name === 'postgres') continue
      for (const container of containersOf(workload))
        for (const variable of environmentOf(manifests, container).keys())
          assert.ok(SETTINGS.includes(variable) || variable in FRUGAL_MALLOC, variable)
    }
  })
}

const namesOf = (pods: Workload[]): string[] => pods.map(({ owner }) => owner.metadata.name)

type Referrer = {
  kind: string
  metadata: { name: string }
  spec?: {
    scaleTargetRef?: { name: string }
    service?: { name: string }
    issuerRef?: { name: string }
    ports?: { targetPort: string }[]
  }
  roleRef?: { kind: string; name: string }
  subjects?: { name: string; namespace: string }[]
}

const secretsOf = (workload: Workload): [secret: string, key: string][] =>
  containersOf(workload).flatMap(({ env = [] }) =>
    env.flatMap(({ valueFrom }): [string, string][] =>
      valueFrom?.secretKeyRef ? [[valueFrom.secretKeyRef.name, valueFrom.secretKeyRef.key]] : [],
    ),
  )
