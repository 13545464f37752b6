import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { parseConfig, SETTINGS } from '../../worker-runtime/config.ts'
import { FRUGAL_MALLOC } from '../../worker-runtime/local/worker-process.ts'
import { parseDockerfile } from '../support/dockerfile.ts'
import { buildFolder, splitImage } from '../support/kustomize.ts'
import { containersOf, find, K8S, OVERLAYS, workloads } from '../support/manifests.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

type Service = Record<string, unknown> & {
  image: string
  build?: { context: string; dockerfile: string; target: string }
  command?: string[]
  environment: Record<string, string>
  volumes?: string[]
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
}

const compose = parse(read('docker-compose.yml')) as {
  name: string
  services: Record<string, Service>
  volumes: Record<string, null>
}

/** Keys of the Compose specification that are used. */
const SERVICE_KEYS = [
  ...['image', 'build', 'command', 'environment', 'volumes', 'ports', 'depends_on', 'healthcheck', 'restart'],
  ...['init', 'read_only', 'tmpfs', 'cap_drop', 'security_opt', 'stop_grace_period'],
]
const CONDITIONS = ['service_started', 'service_healthy', 'service_completed_successfully']

test('docker compose has services that fit together', () => {
  assert.deepEqual(Object.keys(compose).sort(), ['name', 'services', 'volumes'])
  const stages = parseDockerfile(read('worker-runtime/Dockerfile')).map(({ name }) => name)
  for (const [name, service] of Object.entries(compose.services)) {
    for (const key of Object.keys(service)) assert.ok(SERVICE_KEYS.includes(key), `${name}: ${key}`)
    assert.match(splitImage(service.image)[1], /^:\d+\.\d+/, `${name}: ${service.image}`)
    if (service.build) {
      assert.deepEqual(Object.keys(service.build), ['context', 'dockerfile', 'target'])
      assert.ok(existsSync(join(ROOT, service.build.dockerfile)))
      assert.ok(stages.includes(service.build.target))
    }
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      assert.ok(compose.services[other], other)
      assert.ok(CONDITIONS.includes(condition), condition)
    }
    for (const volume of service.volumes ?? []) {
      const [from = ''] = volume.split(':')
      assert.ok(from in compose.volumes || existsSync(join(ROOT, from)), volume)
    }
    for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/, 'loopback only')
    for (const file of (service.command ?? []).filter((word) => word.endsWith('.ts')))
      assert.ok(existsSync(join(ROOT, file)), file)
  }
})

test('what compose sets are settings, and its logins are those that its Postgres makes', () => {
  const logins = read('k8s/overlays/local/logins.sql')
  for (const [name, { environment }] of Object.entries(compose.services)) {
    if (name === 'postgres') continue
    parseConfig(environment)
    for (const key of Object.keys(environment)) assert.ok(SETTINGS.includes(key) || key in FRUGAL_MALLOC, key)
    const { username, password, hostname } = new URL(environment.DATABASE_URL ?? '')
    assert.ok(compose.services[hostname], hostname)
    assert.notEqual(
      username,
      compose.services.postgres?.environment.POSTGRES_USER,
      'nothing runs as the superuser',
    )
    assert.match(logins, new RegExp(`create role ${username} login password '${password}'`))
  }
})

test('the local overlay has the same Postgres and logins as compose', () => {
  const manifests = buildFolder(join(K8S, 'overlays/local'))
  const [postgres] = workloads(manifests)
    .filter(({ owner }) => owner.kind === 'StatefulSet')
    .flatMap(containersOf)
  assert.equal(postgres?.image, compose.services.postgres?.image)
  const secret = manifests.find(
    ({ kind, metadata }) => kind === 'Secret' && metadata.name.startsWith('smartqueue-'),
  )
  const ownerOf = (url: string): string => `${new URL(url).username}:${new URL(url).password}`
  const inCluster = Object.values(secret?.data ?? {}).map((value) => ownerOf(atob(String(value))))
  const inCompose = ['worker', 'functions', 'migrate'].map((name) =>
    ownerOf(compose.services[name]?.environment.DATABASE_URL ?? ''),
  )
  assert.deepEqual(inCluster.sort(), inCompose.sort())
  assert.ok(find(manifests, 'Service', 'postgres'))
})

test('one version of the image is named, wherever one is', () => {
  const files = [
    'docker-compose.yml',
    'worker-runtime/Dockerfile',
    'docs/operations.md',
    '.github/workflows/ci.yml',
  ]
  const named = files.flatMap((file) => [...read(file).matchAll(/ghcr\.io\/smartqueue\/[\w-]+:([\w.-]+)/g)])
  const overlays = OVERLAYS.map((name) =>
    /newTag: (.+)/.exec(read(`k8s/overlays/${name}/kustomization.yaml`)),
  )
  const versions = new Set([...named, ...overlays].map((match) => match?.[1]))
  assert.equal(versions.size, 1, [...versions].join())
})

type Step = { uses?: string; run?: string; with?: Record<string, unknown> }
type Workflow = {
  on: Record<string, unknown>
  permissions: Record<string, string>
  jobs: Record<string, { permissions?: Record<string, string>; 'timeout-minutes'?: number; steps: Step[] }>
}

const workflows = globSync('.github/workflows/*.yml', { cwd: ROOT }).map((file): [string, Workflow] => [
  file,
  parse(read(file)) as Workflow,
])

test('workflows may do no more than they need, end in time, and use pinned actions', () => {
  assert.ok(workflows.length >= 2)
  for (const [file, { permissions, jobs }] of workflows) {
    assert.deepEqual(permissions, { contents: 'read' }, file)
    for (const [name, job] of Object.entries(jobs)) {
      assert.ok(job['timeout-minutes'], `${file} ${name}`)
      for (const { uses, with: given } of job.steps) {
        if (!uses) continue
        assert.match(uses, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/, uses)
        if (uses.startsWith('actions/checkout')) assert.equal(given?.['persist-credentials'], false)
      }
    }
  }
})

test('a pinned action names its version and has the same pin in all workflows', () => {
  const pins = workflows.flatMap(([file]) =>
    [...read(file).matchAll(/uses: (\S+)@(.*)/g)].map(([, action, pin]) => [action, pin] as const),
  )
  for (const [action, pin] of pins) {
    assert.match(pin ?? '', /^[0-9a-f]{40} # v\d+\.\d+\.\d+$/, action)
    assert.equal(pin, new Map(pins).get(action), action)
  }
  assert.equal(
    pins.length,
    workflows.flatMap(([, workflow]) => stepsOf(workflow).filter(({ uses }) => uses)).length,
  )
})

test('every image that is not built here is pinned by digest', () => {
  const [base] = parseDockerfile(read('worker-runtime/Dockerfile'))
  const inCompose = Object.values(compose.services).filter(({ build }) => !build)
  const inCluster = OVERLAYS.flatMap((name) => workloads(buildFolder(join(K8S, 'overlays', name))))
    .flatMap(containersOf)
    .filter(({ image }) => !image?.startsWith('ghcr.io/smartqueue/'))
  const images = [base?.from, ...[...inCompose, ...inCluster].map(({ image }) => image)]
  assert.ok(images.length >= 3)
  for (const image of images) assert.match(image ?? '', /^[\w/.-]+:\d[\w.-]+@sha256:[0-9a-f]{64}$/)
  // A syntax line would make BuildKit pull and run another image.
  assert.doesNotMatch(read('worker-runtime/Dockerfile'), /^# *syntax=/m)
})

test('Dependabot updates every kind of pin', () => {
  const { updates } = parse(read('.github/dependabot.yml')) as {
    updates: { 'package-ecosystem': string; directory: string }[]
  }
  const watched = updates.map((update) => `${update['package-ecosystem']} ${update.directory}`)
  assert.deepEqual(watched.sort(), [
    'docker /k8s/overlays/local',
    'docker /worker-runtime',
    'docker-compose /',
    'github-actions /',
  ])
})

test('a pull request is tested and its image built; main and tags are pushed with provenance', () => {
  const [, ci] = workflows.find(([file]) => file.endsWith('ci.yml')) ?? []
  assert.ok(ci && 'pull_request' in ci.on)
  const steps = stepsOf(ci)
  assert.ok(steps.some(({ run }) => run === 'npm test'))
  assert.equal(buildOf(steps)?.push, false)

  const [, images] = workflows.find(([file]) => file.endsWith('images.yml')) ?? []
  assert.deepEqual(images?.on, { push: { branches: ['main'], tags: ['v*.*.*'] } })
  const push = images?.jobs.push
  assert.deepEqual(push?.permissions, {
    contents: 'read',
    packages: 'write',
    'id-token': 'write',
    attestations: 'write',
  })
  const build = buildOf(push?.steps ?? [])
  assert.equal(build?.push, true)
  assert.equal(build?.provenance, 'mode=max')
  assert.equal(build?.sbom, true)
  assert.equal(build?.platforms, 'linux/amd64,linux/arm64')
  assert.ok(push?.steps.some(({ uses }) => uses?.startsWith('actions/attest-build-provenance@')))
})

const stepsOf = ({ jobs }: Workflow): Step[] => Object.values(jobs).flatMap((job) => job.steps)

const buildOf = (steps: Step[]): Record<string, unknown> | undefined =>
  steps.find(({ uses }) => uses?.startsWith('docker/build-push-action@'))?.with
