import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FIRING_LANES } from '../../worker-runtime/schedules/duty.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const guide = read('docs/operations.md')

test('what the guide for operators tells to run is there', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  for (const [, script = ''] of guide.matchAll(/npm run (?:--silent )?([\w:-]+)/g))
    assert.ok(scripts[script], `npm run ${script}`)
  const help = execFileSync(process.execPath, ['worker-runtime/admin/main.ts', '--help'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const [, command = ''] of guide.matchAll(/npm run admin -- ([\w-]+)/g))
    assert.match(help, new RegExp(`^ {2}${command} `, 'm'), command)
  for (const [path] of guide.matchAll(/(?:k8s|worker-runtime|\.github)\/[\w./-]*\w/g))
    assert.ok(existsSync(join(ROOT, path)), path)
})

test('the guide says who makes each Secret, and what is in it', () => {
  for (const name of [
    'smartqueue-database',
    'smartqueue-connections',
    'smartqueue-tracing',
    'smartqueue-operations-token',
    'smartqueue-metrics-adapter-certificate',
  ])
    assert.ok(guide.includes(name), name)
  for (const key of ['DATABASE_URL', 'CONTROLLER_DATABASE_URL', 'MIGRATION_DATABASE_URL'])
    assert.match(guide, new RegExp(`^${key}=<`, 'm'))
})

test('the guide counts the connections that a worker opens', () => {
  const source = read('worker-runtime/worker.ts')
  const shared = Number(/const MAX_CONNECTIONS = (\d+)/.exec(source)?.[1])
  const pools = [...source.matchAll(/= connect\((\w+)/g)].map(([, size]) =>
    size === 'MAX_CONNECTIONS' ? shared : Number(size),
  )
  // And one that listens, one for the election.
  const worker = pools.reduce((sum, size) => sum + size, 2)
  assert.match(guide, new RegExp(`A worker opens at most ${worker}:`))
  // One to tell of jobs that have ended, one to learn.
  assert.match(guide, new RegExp(`The leader opens ${FIRING_LANES + 2} more`))
})
