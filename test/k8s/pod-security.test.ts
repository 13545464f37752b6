import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PUBLIC_RANGES } from '../../worker-runtime/egress/address-guard.ts'
import { builds, containersOf, find, isSelected, selectorOf, workloads } from '../support/manifests.ts'

/** The restricted Pod Security Standard, rule by rule: what is not named here must not be set. */
const RESTRICTED_VOLUMES = ['configMap', 'emptyDir', 'secret', 'projected', 'persistentVolumeClaim']

for (const [name, manifests] of builds()) {
  test(`${name}: the namespace refuses pods that are not restricted, and all of ours are`, () => {
    const labels = find(manifests, 'Namespace', 'smartqueue')?.metadata.labels
    assert.equal(labels?.['pod-security.kubernetes.io/enforce'], 'restricted')
    for (const workload of workloads(manifests)) {
      const { pod, owner } = workload
      const at = owner.metadata.name
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'hostUsers', 'shareProcessNamespace'])
        assert.ok(!(field in pod), `${at}: ${field}`)
      const { runAsNonRoot, runAsUser, seccompProfile, sysctls, ...rest } = pod.securityContext ?? {}
      assert.equal(runAsNonRoot, true, at)
      assert.ok(Number(runAsUser) > 0, at)
      assert.equal(seccompProfile?.type, 'RuntimeDefault', at)
      assert.equal(sysctls, undefined, at)
      assert.deepEqual(
        Object.keys(rest).filter((key) => !['runAsGroup', 'fsGroup'].includes(key)),
        [],
        at,
      )
      for (const { name: volume, ...source } of pod.volumes ?? [])
        assert.ok(
          Object.keys(source).every((kind) => RESTRICTED_VOLUMES.includes(kind)),
          `${at}: volume ${volume}`,
        )
      for (const container of containersOf(workload)) {
        assert.deepEqual(
          container.securityContext,
          {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          at,
        )
        assert.ok(
          (container.ports ?? []).every((port) => !('hostPort' in port)),
          at,
        )
      }
    }
  })

  test(`${name}: only who asks Kubernetes something has a token for it`, () => {
    for (const { owner, pod } of workloads(manifests)) {
      const asks = ['smartqueue-controller', 'smartqueue-metrics-adapter'].includes(owner.metadata.name)
      assert.equal(pod.automountServiceAccountToken, asks, owner.metadata.name)
      const account = find(manifests, 'ServiceAccount', pod.serviceAccountName ?? '')
      assert.equal(account?.automountServiceAccountToken, false, 'a token is never mounted by the way')
    }
  })

  test(`${name}: nothing is reached but what a policy opens`, () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy') as unknown as Policy[]
    const deny = policies.find(({ metadata }) => metadata.name === 'default-deny')
    assert.deepEqual(deny?.spec, { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
    for (const { metadata, spec } of policies) {
      const blocks = (spec.egress ?? []).flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
      // The workers' address guard and the policies allow the same ranges.
      if (metadata.name === 'jobs' || metadata.name === 'database') assert.deepEqual(blocks, PUBLIC_RANGES)
      else
        for (const block of blocks)
          assert.deepEqual(block, { cidr: '169.254.20.10/32' }, 'the node-local DNS cache')
    }
    const intoMetrics = policies.filter(({ spec }) =>
      spec.ingress?.some(({ ports }) => ports.some(({ port }) => port === 9464)),
    )
    assert.ok(intoMetrics.length > 0)
    for (const { spec } of intoMetrics)
      for (const { from } of spec.ingress ?? []) assert.ok(from, 'from somebody')
  })
}

/** Beside 443: of kubeadm, minikube and MicroK8s. */
const API_SERVERS = [6443, 8443, 16443]

/** By component: what it calls, and on which ports it is called. */
const NEEDED: Record<string, { egress: number[]; ingress: number[] }> = {
  worker: { egress: [53, 80, 443, 4318, 5432], ingress: [9464] },
  controller: { egress: [53, 443, 5432, ...API_SERVERS], ingress: [9464] },
  'metrics-adapter': { egress: [53, 443, 5432, ...API_SERVERS], ingress: [6443, 9464] },
  migration: { egress: [53, 5432], ingress: [] },
  postgres: { egress: [53], ingress: [5432] },
}

for (const [name, manifests] of builds()) {
  test(`${name}: each pod reaches what it needs, and is reached by whom it serves`, () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy')
    for (const { labels } of workloads(manifests)) {
      const component = labels['app.kubernetes.io/component'] ?? ''
      const its = policies.filter((policy) => isSelected(labels, selectorOf(policy))) as unknown as Policy[]
      const portsOf = (direction: 'egress' | 'ingress'): number[] => {
        const ports = its.flatMap(({ spec }) => (spec[direction] ?? []).flatMap((rule) => rule.ports))
        return [...new Set(ports.map(({ port }) => port))].sort((a, b) => a - b)
      }
      assert.deepEqual(
        { egress: portsOf('egress'), ingress: portsOf('ingress') },
        NEEDED[component],
        component,
      )
    }
  })
}

type Policy = {
  metadata: { name: string }
  spec: {
    egress?: { to?: { ipBlock?: { cidr: string; except?: string[] } }[]; ports: { port: number }[] }[]
    ingress?: { from?: object[]; ports: { port: number }[] }[]
  }
}
