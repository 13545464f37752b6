import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import type { Source } from '../../functions/dashboard/api/answers.ts'
import { signedEvent } from '../../functions/dashboard/views/webhooks/signed-event.ts'
import { type HmacSettings, schemeOf } from '../../functions/webhooks/schemes.ts'
import { viewScheme } from '../../functions/webhooks/verification.ts'

const url = 'https://queue.example.com/hooks/1'

const commandsFor = (scheme: Source['scheme'], settings: HmacSettings = {}): string =>
  signedEvent({ scheme, url, verification: viewScheme(schemeOf(scheme, settings)) })

/** What the commands would send: curl is taken for printf. */
const sent = (commands: string, secret: string) => {
  const script = commands.replace("SECRET='…'", `SECRET='${secret}'`).replace('curl -s', "printf '%s\\n'")
  const lines = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
  const headers = new Map(
    lines.filter((line) => /^[\w-]+: /.test(line)).map((line) => line.split(': ') as [string, string]),
  )
  return { headers, body: lines.at(-1) ?? '' }
}

test('the commands of a source sign as its sender would', () => {
  const github = sent(commandsFor('github'), 's3cret!')
  const hex = createHmac('sha256', 's3cret!').update(github.body).digest('hex')
  assert.equal(github.headers.get('x-hub-signature-256'), `sha256=${hex}`)

  const stripe = sent(commandsFor('stripe'), 'whsec_x')
  const [, time, signature] = stripe.headers.get('stripe-signature')?.match(/^t=(\d+),v1=(\w+)$/) ?? []
  assert.equal(signature, createHmac('sha256', 'whsec_x').update(`${time}.${stripe.body}`).digest('hex'))

  const key = Buffer.alloc(24, 'k')
  const standard = sent(commandsFor('standard-webhooks'), `whsec_${key.toString('base64')}`)
  const signed = `first.${standard.headers.get('webhook-timestamp')}.${standard.body}`
  const base64 = createHmac('sha256', key).update(signed).digest('base64')
  assert.equal(standard.headers.get('webhook-signature'), `v1,${base64}`)

  const settings: HmacSettings = { algorithm: 'sha512', encoding: 'base64', timestamp_header: 'x-time' }
  const hmac = sent(commandsFor('hmac', settings), 'shared')
  const content = `${hmac.headers.get('x-time')}.${hmac.body}`
  const digest = createHmac('sha512', 'shared').update(content).digest('base64')
  assert.equal(hmac.headers.get('x-signature'), `sha512=${digest}`)
})
