import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verificationOf } from '../../functions/dashboard/views/webhooks/verification.ts'
import { type HmacSettings, schemeOf } from '../../functions/webhooks/schemes.ts'
import { viewScheme } from '../../functions/webhooks/verification.ts'

const shown = (settings: HmacSettings) => ({ verification: viewScheme(schemeOf('hmac', settings)) })

test('of how a source is signed the form shows what was said, and no defaults', () => {
  const slack = {
    signature_header: 'x-slack-signature',
    timestamp_header: 'x-slack-request-timestamp',
    prefix: 'v0=',
    content: 'v0:{timestamp}:{body}',
    id_path: '$.event_id',
  }
  const others: HmacSettings = { algorithm: 'sha512', encoding: 'base64', prefix: '', type_path: '$.type' }
  const timed = { timestamp_header: 'x-time' }
  for (const settings of [{}, slack, others, timed, { ...timed, tolerance_seconds: 60 }]) {
    assert.deepEqual(verificationOf(shown(settings)), settings)
  }
})
