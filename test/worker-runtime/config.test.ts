import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { ConfigError, parseConfig, SETTINGS, secretsOf } from '../../worker-runtime/config.ts'

test('nothing has to be configured', () => {
  const config = parseConfig({})
  assert.deepEqual(
    [config.PORT, config.SMARTQUEUE_HOME, config.SMARTQUEUE_WORKER_SLOTS],
    [8787, '.smartqueue', 10],
  )
  assert.deepEqual([config.SMARTQUEUE_POLICY, config.SMARTQUEUE_RETENTION_DAYS], ['learned', 30])
  assert.equal(config.SMARTQUEUE_AUTO_TIMEOUT, 10)
  assert.deepEqual(
    [config.SMARTQUEUE_WORKER_CPU_UNITS, config.SMARTQUEUE_WORKER_MEMORY_MB],
    [undefined, undefined],
  )
})

test('capacity, policy and retention can be set', () => {
  const config = parseConfig({
    SMARTQUEUE_WORKER_CPU_UNITS: '16',
    SMARTQUEUE_WORKER_MEMORY_MB: '32000',
    SMARTQUEUE_POLICY: 'fifo',
    SMARTQUEUE_RETENTION_DAYS: '7',
  })
  assert.deepEqual([config.SMARTQUEUE_WORKER_CPU_UNITS, config.SMARTQUEUE_WORKER_MEMORY_MB], [16, 32_000])
  assert.deepEqual([config.SMARTQUEUE_POLICY, config.SMARTQUEUE_RETENTION_DAYS], ['fifo', 7])
})

test('the passwords of all databases, and what spans are sent with, are known as secrets', () => {
  const config = parseConfig({
    DATABASE_URL: 'postgres://u:first-secret@h/d',
    SMARTQUEUE_CONNECTIONS: '{"a":"postgres://u:second-secret@h/d","b":{"url":"postgres://h/d"}}',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20third-secret, x-key=fourth-secret',
  })
  assert.deepEqual(
    [...new Set(secretsOf(config))],
    ['first-secret', 'second-secret', 'Bearer third-secret', 'third-secret', 'fourth-secret'],
  )
})

test('executables for shell jobs are named by their paths; without any the type is off', () => {
  assert.equal(parseConfig({ SMARTQUEUE_SHELL_ALLOW: '' }).SMARTQUEUE_SHELL_ALLOW, undefined)
  const { SMARTQUEUE_SHELL_ALLOW } = parseConfig({
    SMARTQUEUE_SHELL_ALLOW: ' /bin/sh, /usr/bin/env,/bin/sh ',
  })
  assert.deepEqual(SMARTQUEUE_SHELL_ALLOW, ['/bin/sh', '/usr/bin/env'])
})

const bad: [Record<string, string>, RegExp][] = [
  [{ PORT: '0' }, /^PORT: must be a whole number from 1 to 65535$/],
  [{ PORT: '8787x' }, /^PORT: /],
  [{ PORT: '-1' }, /^PORT: /],
  [{ DATABASE_URL: 'mysql://x' }, /^DATABASE_URL: must be a postgres:\/\/ URL$/],
  [{ SMARTQUEUE_WORKER_SLOTS: '1.5' }, /^SMARTQUEUE_WORKER_SLOTS: /],
  [{ SMARTQUEUE_MIN_WORKERS: '0' }, /^SMARTQUEUE_MIN_WORKERS: /],
  [{ SMARTQUEUE_LOG_LEVEL: 'loud' }, /^SMARTQUEUE_LOG_LEVEL: /],
  [{ SMARTQUEUE_WORKER_CPU_UNITS: '0' }, /^SMARTQUEUE_WORKER_CPU_UNITS: /],
  [{ SMARTQUEUE_WORKER_MEMORY_MB: '1GB' }, /^SMARTQUEUE_WORKER_MEMORY_MB: /],
  [{ SMARTQUEUE_SHARED_ESTIMATES: 'yes' }, /^SMARTQUEUE_SHARED_ESTIMATES: .*"on"\|"off"/],
  [{ SMARTQUEUE_POLICY: 'lifo' }, /^SMARTQUEUE_POLICY: .*"learned"\|"fifo"/],
  [{ SMARTQUEUE_RETENTION_DAYS: '0' }, /^SMARTQUEUE_RETENTION_DAYS: /],
  [{ SMARTQUEUE_AUTO_TIMEOUT: '-1' }, /^SMARTQUEUE_AUTO_TIMEOUT: must be a whole number from 0 to 1000$/],
  [{ SMARTQUEUE_HTTP_ALLOW: '10.0.0.0/99' }, /^SMARTQUEUE_HTTP_ALLOW: "10\.0\.0\.0\/99": /],
  [{ SMARTQUEUE_CONNECTIONS: 'postgres://u:p@h/d' }, /^SMARTQUEUE_CONNECTIONS: must be a JSON object/],
  [{ SMARTQUEUE_CONNECTIONS: '{"a":"x"}' }, /^SMARTQUEUE_CONNECTIONS: "a": url must be a postgres:/],
  [{ SMARTQUEUE_SHELL_ALLOW: 'ls' }, /^SMARTQUEUE_SHELL_ALLOW: "ls" is not an absolute path$/],
  [{ SMARTQUEUE_SHELL_ALLOW: '/bin/sh,/no/where' }, /^SMARTQUEUE_SHELL_ALLOW: "\/no\/where" does not exist$/],
  [{ SMARTQUEUE_SHELL_ALLOW: '/bin' }, /^SMARTQUEUE_SHELL_ALLOW: "\/bin" is not a file$/],
  [{ SMARTQUEUE_SHELL_ALLOW: '/etc/passwd' }, /^SMARTQUEUE_SHELL_ALLOW: "\/etc\/passwd" is not executable$/],
  [{ SMARTQUEUE_SHELL_ALLOW: '/bin/sh,' }, /^SMARTQUEUE_SHELL_ALLOW: an entry between commas is empty$/],
  [{ SMARTQUEUE_POD_SELECTOR: 'everything' }, /^SMARTQUEUE_POD_SELECTOR: must be labels as in /],
  [{ SMARTQUEUE_ADAPTER_TLS_DIR: 'tls' }, /^SMARTQUEUE_ADAPTER_TLS_DIR: must be an absolute path$/],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    /^OTEL_EXPORTER_OTLP_ENDPOINT: must be an http\(s\) URL/,
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/v1/traces' }, /^OTEL_EXPORTER_OTLP_ENDPOINT: .*without/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'Bearer x' }, /^OTEL_EXPORTER_OTLP_HEADERS: must be a list like name=value/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=b%0d%0ac' }, /^OTEL_EXPORTER_OTLP_HEADERS: /],
  [{ OTEL_RESOURCE_ATTRIBUTES: 'a=%' }, /^OTEL_RESOURCE_ATTRIBUTES: /],
  [{ OTEL_TRACES_SAMPLER: 'some' }, /^OTEL_TRACES_SAMPLER: .*"always_on"/],
  [{ OTEL_TRACES_SAMPLER_ARG: '1.5' }, /^OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1$/],
  [{ SMARTQUEUE_HOEM: '/tmp' }, /^SMARTQUEUE_HOEM: is not a setting/],
]

for (const [env, message] of bad) {
  test(`${JSON.stringify(env)} refuses to boot and names the variable`, () => {
    assert.throws(
      () => parseConfig(env),
      (error) => error instanceof ConfigError && message.test(error.message),
    )
  })
}

test('every bad variable is named, a line each', () => {
  const twoBad = { PORT: 'x', SMARTQUEUE_WORKER_SLOTS: 'y' }
  assert.throws(() => parseConfig(twoBad), { message: /^PORT: .*\nSMARTQUEUE_WORKER_SLOTS: .*$/ })
})

test('a worker with a bad setting exits with one line and no stack', () => {
  const { status, stderr } = spawnSync(process.execPath, ['worker-runtime/main.ts'], {
    env: { ...process.env, DATABASE_URL: 'postgres://127.0.0.1/x', SMARTQUEUE_WORKER_SLOTS: 'many' },
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.equal(stderr, 'SMARTQUEUE_WORKER_SLOTS: must be a whole number from 1 to 1000\n')
})

test('an unknown argument of a command is one line', () => {
  for (const command of [
    'worker-runtime/main.ts',
    'worker-runtime/migrate.ts',
    'worker-runtime/local/dev.ts',
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [command, '--colour'], { encoding: 'utf8' })
    assert.equal(status, 1)
    assert.match(stderr, /^Unknown option '--colour'.*\n$/)
  }
})

test("the README's table has a row for every setting", async () => {
  const readme = await readFile('README.md', 'utf8')
  for (const name of SETTINGS) {
    assert.match(readme, new RegExp(`^\\|.*\`${name}\`.* \\|`, 'm'), name)
  }
})
