import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { WebhookScheme } from '../../db/queries/webhook-sources.ts'
import { type HmacSettings, PRESETS, schemeOf } from '../../functions/webhooks/schemes.ts'
import { newSecret, secretFault } from '../../functions/webhooks/secrets.ts'
import { verify } from '../../functions/webhooks/verify.ts'
import { SIGNERS, type Signed } from '../support/webhooks.ts'

const NOW_S = 1_800_000_000
const BODY = '{"id":"evt_1","type":"paid","text":"Grüße, 世界"}'

const bytesOf = (text: string) => new Uint8Array(new TextEncoder().encode(text))

const check = (
  { body, headers }: { body: string | Uint8Array<ArrayBuffer>; headers: Record<string, string> },
  options: {
    secret: string
    previous?: { secret: string; expiresAtMs: number }
    scheme?: WebhookScheme
    settings?: HmacSettings
    nowMs?: number
  },
) =>
  verify(
    schemeOf(options.scheme ?? 'hmac', options.settings ?? {}),
    { headers, bytes: typeof body === 'string' ? bytesOf(body) : body },
    {
      current: options.secret,
      previous: options.previous?.secret ?? null,
      previousExpiresAtMs: options.previous?.expiresAtMs ?? 0,
    },
    options.nowMs ?? NOW_S * 1000,
  )

const reasonOf = (verdict: Awaited<ReturnType<typeof verify>>): string => (verdict.ok ? '' : verdict.reason)

const signed = (scheme: WebhookScheme, secret: string): Promise<Signed> =>
  SIGNERS[scheme](secret, BODY, { at: NOW_S, id: 'event-1' })

const SCHEMES: WebhookScheme[] = ['github', 'stripe', 'standard-webhooks', 'hmac']

test('what the library of each provider signs is taken, and with one bit changed anywhere it is not', async () => {
  for (const scheme of SCHEMES) {
    const secret = newSecret(scheme)
    const sent = await signed(scheme, secret)
    assert.deepEqual(await check(sent, { scheme, secret }), { ok: true }, scheme)
    for (let n = 0; n < bytesOf(BODY).length; n += 7) {
      const body = bytesOf(BODY)
      body[n] = (body[n] ?? 0) ^ 1
      const verdict = await check({ ...sent, body }, { scheme, secret })
      assert.equal(reasonOf(verdict), 'The signature does not match.', `${scheme}, byte ${n}`)
    }
    const other = await check(sent, { scheme, secret: newSecret(scheme) })
    assert.equal(reasonOf(other), 'The signature does not match.', scheme)
  }
})

test('a body that is no text is verified as it came', async () => {
  const body = new Uint8Array([0xff, 0x00, 0xfe, 0x0a])
  const headers = { 'x-signature': createHmac('sha256', 'secret').update(body).digest('hex') }
  assert.deepEqual(await check({ body, headers }, { secret: 'secret' }), { ok: true })
})

test('timestamps count up to 300 seconds from now, in both directions', async () => {
  for (const scheme of ['stripe', 'standard-webhooks'] as const) {
    const secret = newSecret(scheme)
    const sent = await signed(scheme, secret)
    for (const [seconds, isTaken] of [
      [300, true],
      [301, false],
      [-300, true],
      [-301, false],
    ] as const) {
      const verdict = await check(sent, { scheme, secret, nowMs: (NOW_S + seconds) * 1000 })
      const expected = isTaken ? '' : 'The timestamp is more than 300 seconds in the past or future.'
      assert.equal(reasonOf(verdict), expected, `${scheme} ${seconds}`)
    }
  }
})

test('a timestamp that was not signed is worth nothing, and neither is one that is no number', async () => {
  const secret = newSecret('standard-webhooks')
  const sent = await signed('standard-webhooks', secret)
  const scheme = 'standard-webhooks' as const
  const moved = { ...sent, headers: { ...sent.headers, 'webhook-timestamp': String(NOW_S + 1) } }
  assert.equal(reasonOf(await check(moved, { scheme, secret })), 'The signature does not match.')
  const settings = { timestamp_header: 'x-time' }
  for (const time of ['soon', '', '1e9', '-1', `${NOW_S}.5`]) {
    const signature = createHmac('sha256', 'secret').update(`${time}.${BODY}`).digest('hex')
    const headers = { 'x-time': time, 'x-signature': signature }
    assert.match(reasonOf(await check({ body: BODY, headers }, { secret: 'secret', settings })), /timestamp/)
  }
})

test('an hmac source can set how old a delivery may be', async () => {
  const settings = { timestamp_header: 'x-time', tolerance_seconds: 20 }
  const signature = createHmac('sha256', 'secret').update(`${NOW_S}.${BODY}`).digest('hex')
  const sent = { body: BODY, headers: { 'x-time': String(NOW_S), 'x-signature': signature } }
  for (const seconds of [20, 21, -20, -21]) {
    const verdict = await check(sent, { secret: 'secret', settings, nowMs: (NOW_S + seconds) * 1000 })
    const expected =
      Math.abs(seconds) <= 20 ? '' : 'The timestamp is more than 20 seconds in the past or future.'
    assert.equal(reasonOf(verdict), expected, String(seconds))
  }
})

test('what is missing is named', async () => {
  const cases: [WebhookScheme, string, string][] = [
    ['github', 'x-hub-signature-256', 'The header x-hub-signature-256 has no signature.'],
    ['stripe', 'stripe-signature', 'The header stripe-signature has no signature.'],
    ['standard-webhooks', 'webhook-signature', 'The header webhook-signature has no signature.'],
    ['standard-webhooks', 'webhook-timestamp', 'The header webhook-timestamp has no timestamp.'],
    ['standard-webhooks', 'webhook-id', 'The header webhook-id is missing.'],
    ['hmac', 'x-signature', 'The header x-signature has no signature.'],
  ]
  for (const [scheme, header, reason] of cases) {
    const secret = newSecret(scheme)
    const { body, headers } = await signed(scheme, secret)
    const { [header]: _, ...rest } = headers
    assert.equal(reasonOf(await check({ body, headers: rest }, { scheme, secret })), reason)
  }
  const secret = newSecret('stripe')
  const { headers } = await signed('stripe', secret)
  const [time, v1] = (headers['stripe-signature'] ?? '').split(',')
  for (const header of [time, v1, `${time},v0=${v1?.slice(3)}`]) {
    const verdict = await check(
      { body: BODY, headers: { 'stripe-signature': header ?? '' } },
      { scheme: 'stripe', secret },
    )
    assert.equal(verdict.ok, false, header)
  }
})

test('any of the signatures of a header counts, up to ten', async () => {
  const stripe = { scheme: 'stripe' as const, secret: newSecret('stripe') }
  const value = (await signed('stripe', stripe.secret)).headers['stripe-signature'] ?? ''
  const [time, v1] = value.split(',')
  const wrong = `v1=${'0'.repeat(64)}`
  const check1 = (header: string) => check({ body: BODY, headers: { 'stripe-signature': header } }, stripe)
  assert.ok((await check1([time, wrong, 'v0=abc', v1].join(','))).ok)
  assert.ok(!(await check1([time, ...Array.from({ length: 10 }, () => wrong), v1].join(','))).ok)

  const standard = { scheme: 'standard-webhooks' as const, secret: newSecret('standard-webhooks') }
  const { headers } = await signed('standard-webhooks', standard.secret)
  const list = `v1,${btoa('x'.repeat(32))} v1a,abc ${headers['webhook-signature']}`
  assert.ok((await check({ body: BODY, headers: { ...headers, 'webhook-signature': list } }, standard)).ok)
})

test('the secret before is good until it expires', async () => {
  for (const scheme of SCHEMES) {
    const [secret, old] = [newSecret(scheme), newSecret(scheme)]
    const sent = await signed(scheme, old)
    const previous = { secret: old, expiresAtMs: NOW_S * 1000 + 1 }
    assert.ok((await check(sent, { scheme, secret, previous })).ok, scheme)
    const expired = { secret: old, expiresAtMs: NOW_S * 1000 }
    assert.ok(!(await check(sent, { scheme, secret, previous: expired })).ok, scheme)
    assert.ok((await check(await signed(scheme, secret), { scheme, secret, previous })).ok, scheme)
  }
})

test('the scheme hmac is signed as its settings say', async () => {
  const secret = 'a secret of ours'
  const hmac = (algorithm: string, content: string) => createHmac(algorithm, secret).update(content)
  const take = async (settings: HmacSettings, headers: Record<string, string>) =>
    (await check({ body: BODY, headers }, { secret, settings })).ok
  const hex = hmac('sha256', BODY).digest('hex')
  assert.ok(await take({}, { 'x-signature': hex }))
  assert.ok(await take({}, { 'x-signature': `sha256=${hex.toUpperCase()}` }))
  assert.ok(await take({ prefix: 'sig ' }, { 'x-signature': `sig ${hex}` }))
  assert.ok(!(await take({ prefix: 'sig ' }, { 'x-signature': hex })), 'a prefix that is given must be there')
  assert.ok(await take({ prefix: '' }, { 'x-signature': hex }))
  for (const algorithm of ['sha1', 'sha256', 'sha384', 'sha512'] as const) {
    for (const encoding of ['hex', 'base64'] as const) {
      const settings = { algorithm, encoding, signature_header: 'x-mac' }
      assert.ok(await take(settings, { 'x-mac': hmac(algorithm, BODY).digest(encoding) }), algorithm)
    }
    assert.equal(
      await take({}, { 'x-signature': hmac(algorithm, BODY).digest('hex') }),
      algorithm === 'sha256',
    )
  }
  const base64url = hmac('sha256', BODY).digest('base64url')
  assert.ok(await take({ encoding: 'base64' }, { 'x-signature': base64url }))
  const timed = { 'x-time': String(NOW_S), 'x-signature': hmac('sha256', `${NOW_S}.${BODY}`).digest('hex') }
  assert.ok(await take({ timestamp_header: 'x-time' }, timed))
  const slack = {
    'x-slack-request-timestamp': String(NOW_S),
    'x-slack-signature': `v0=${hmac('sha256', `v0:${NOW_S}:${BODY}`).digest('hex')}`,
  }
  const settings = {
    signature_header: 'x-slack-signature',
    timestamp_header: 'x-slack-request-timestamp',
    prefix: 'v0=',
    content: 'v0:{timestamp}:{body}',
  }
  assert.ok(await take(settings, slack))
  assert.ok(!(await take({}, { 'x-signature': 'not hex' })))
  assert.ok(!(await take({ encoding: 'base64' }, { 'x-signature': '***' })))
})

test('an id that looks like a place in what is signed is itself', async () => {
  const settings: HmacSettings = { timestamp_header: 'x-time', content: '{id}.{timestamp}.{body}' }
  const signature = createHmac('sha256', 's').update(`{timestamp}.${NOW_S}.${BODY}`).digest('hex')
  const headers = { 'x-event-id': '{timestamp}', 'x-time': String(NOW_S), 'x-signature': signature }
  assert.ok((await check({ body: BODY, headers }, { secret: 's', settings })).ok)
})

test('secrets have the form of their scheme', () => {
  assert.match(newSecret('github'), /^[0-9a-f]{64}$/)
  assert.match(newSecret('standard-webhooks'), /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.notEqual(newSecret('hmac'), newSecret('hmac'))
  for (const bytes of [24, 32, 64]) {
    const base64 = Buffer.alloc(bytes, 7).toString('base64')
    assert.equal(secretFault('standard-webhooks', `whsec_${base64}`), undefined)
    assert.equal(secretFault('standard-webhooks', base64), undefined)
  }
  for (const bad of ['whsec_', 'whsec_***', `whsec_${btoa('x'.repeat(23))}`, btoa('x'.repeat(65))]) {
    assert.match(secretFault('standard-webhooks', bad) ?? '', /base64 of 24 to 64 bytes/)
  }
  assert.equal(secretFault('stripe', 'whsec_anything'), undefined)
})

test('presets are data', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(PRESETS)), PRESETS)
})
