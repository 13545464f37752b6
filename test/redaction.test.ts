import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecret, type SecretKind } from '../functions/auth/secrets.ts'
import { createRedactor, passwordsOf, SECRET_PREFIXES } from '../functions/redaction.ts'
import { newSecret } from '../functions/webhooks/secrets.ts'
import { createLogger } from '../worker-runtime/logger.ts'

const HIDDEN = '[redacted]'

test('fields with the name of a secret are hidden, whatever they hold, however deep', () => {
  const { value } = createRedactor()
  const given = {
    password: 'p',
    new_password: 'p',
    Authorization: 'x',
    'set-cookie': 'x',
    nested: [{ api_key: 'k', apiKey: 'k', refresh_token: 1, secrets: ['s'] }],
    DATABASE_URL: 'postgres://x',
    privateKey: {},
    signature: 'x',
  }
  assert.deepEqual(value(given), {
    password: HIDDEN,
    new_password: HIDDEN,
    Authorization: HIDDEN,
    'set-cookie': HIDDEN,
    nested: [{ api_key: HIDDEN, apiKey: HIDDEN, refresh_token: HIDDEN, secrets: HIDDEN }],
    DATABASE_URL: HIDDEN,
    privateKey: HIDDEN,
    signature: HIDDEN,
  })
})

test('what only says which one, or is empty, stays', () => {
  const harmless = {
    api_key_id: 'id',
    token_count: 3,
    password_changed_at: 'then',
    secret: null,
    job_id: 'j',
    at: 1,
  }
  assert.deepEqual(createRedactor().value(harmless), harmless)
})

test('secrets are known by their form wherever they stand', () => {
  const { text } = createRedactor()
  for (const secret of [
    'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD2z9ySCeg5/0=',
    'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  ]) {
    assert.equal(text(`before ${secret} after`), `before ${HIDDEN} after`)
  }
  assert.equal(text('authorization: Bearer abc.def-123456'), `authorization: Bearer ${HIDDEN}`)
  assert.equal(
    text('connect postgres://u:hunter2@db:5432/x failed'),
    `connect postgres://u:${HIDDEN}@db:5432/x failed`,
  )
  assert.equal(text('https://example.com/a:b@c'), 'https://example.com/a:b@c')
})

test('every kind of secret that SmartQueue issues is recognised by its format', async () => {
  const { text } = createRedactor()
  const kinds = Object.keys(SECRET_PREFIXES) as SecretKind[]
  const secrets = await Promise.all(kinds.map(async (kind) => (await createSecret(kind)).secret))
  for (const secret of [...secrets, newSecret('standard-webhooks')])
    for (const before of ['', 'cookie=', '/join#0198a000-0000-7000-8000-00000000000a.'])
      assert.equal(text(`${before}${secret} after`), `${before}${HIDDEN} after`)
})

test('values that are known are hidden in every text', () => {
  const { text, value } = createRedactor(passwordsOf('postgres://u:p%40ss-word@h/d'))
  assert.equal(text('p@ss-word and p%40ss-word'), `${HIDDEN} and ${HIDDEN}`)
  assert.deepEqual(value({ error: 'no entry for p@ss-word' }), { error: `no entry for ${HIDDEN}` })
  const written = createRedactor(passwordsOf('postgres://h/d?user=u&password=p%40ss-word&x=1'))
  assert.equal(written.text('p@ss-word and p%40ss-word'), `${HIDDEN} and ${HIDDEN}`)
  assert.equal(createRedactor(['', 'abc', undefined]).text('abc'), 'abc', 'too short to be one')
})

test('in text of any form, what stands behind the name of a secret is hidden', () => {
  const { unstructured } = createRedactor(['topsecret'])
  for (const [given, expected] of [
    ['user=ada&password=p%20w&n=1', `user=ada&password=${HIDDEN}&n=1`],
    ['{"api_key": "a\\"b", "n": 1}', `{"api_key": ${HIDDEN}, "n": 1}`],
    ["{'client_secret': 'x'}", `{'client_secret': ${HIDDEN}}`],
    ['Token: abc', `Token: ${HIDDEN}`],
    ['Authorization: Bearer abcdefghij', `Authorization: ${HIDDEN} ${HIDDEN}`],
    ['token=topsecret, "token": topsecret', `token=${HIDDEN}, "token": ${HIDDEN}`],
    ['token_id=7 and topsecret', `token_id=7 and ${HIDDEN}`],
    ['{"password": "cut off', `{"password": ${HIDDEN}`],
    ['a secret that has no value', 'a secret that has no value'],
  ] as const) {
    assert.equal(unstructured(given), expected)
  }
  // A webhook that nobody has vouched for may be such a text.
  const long = `${'a'.repeat(64_000)}${'token'.repeat(40_000)}`
  const before = process.cpuUsage()
  assert.equal(unstructured(long), long)
  // Of its own time: others may keep the machine busy. It takes a tenth of this.
  assert.ok(process.cpuUsage(before).user < 300_000, 'a long word costs little')
})

test('how deep is looked can be said', () => {
  const nest = (depth: number, value: unknown): unknown =>
    depth === 0 ? value : { in: nest(depth - 1, value) }
  const { value } = createRedactor([], { deepest: 32 })
  assert.deepEqual(value(nest(31, { kept: 1, token: 't' })), nest(31, { kept: 1, token: HIDDEN }))
  assert.deepEqual(createRedactor().value(nest(20, {})), nest(9, HIDDEN))
})

test('the log of a worker keeps secrets out of messages, fields and errors', () => {
  const lines: string[] = []
  const redactor = createRedactor(['topsecret'])
  const logger = createLogger({ level: 'debug', redactor, pretty: false, write: (line) => lines.push(line) })
  logger.warn('topsecret in a message', {
    error: new Error('topsecret in an error'),
    password: 'p',
    job: { token: 't' },
  })
  assert.equal(lines.length, 1)
  assert.doesNotMatch(lines.join(), /topsecret|"p"|"t"/)
  assert.match(lines.join(), /\[redacted\] in a message.*\[redacted\] in an error/)
})
