import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { createKeyRing, type KeyRing } from '../../functions/auth/key-ring.ts'
import { createRedactor } from '../../functions/redaction.ts'
import { sealTicket, unsealTicket } from '../../functions/stream/ticket-seal.ts'

const keyRing = (): KeyRing => {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  return createKeyRing([{ ...jwk, kid: 'k' } as Parameters<typeof createKeyRing>[0][number]])
}

const ticketOf = (org: string) => `${org}.${'5'.repeat(64)}`
const [ADA, BOB] = ['0198a000-0000-7000-8000-00000000000a', '0198a000-0000-7000-8000-00000000000b']

test('only a ticket with its own seal, by our key, is worth a look', async () => {
  const keys = keyRing()
  const sealed = await sealTicket(keys, ticketOf(ADA))
  assert.equal(await unsealTicket(keys, sealed), ticketOf(ADA))
  const forged = [
    ticketOf(ADA),
    sealed.replace(ADA, BOB),
    sealed.replace('5', '6'),
    await sealTicket(keyRing(), ticketOf(ADA)),
    `${ticketOf(ADA)}.${'0'.repeat(64)}`,
    '',
    'nonsense',
  ]
  for (const text of forged) assert.equal(await unsealTicket(keys, text), undefined, text)
})

test('a ticket is redacted in logs, with or without its seal', async () => {
  const { text } = createRedactor()
  for (const ticket of [ticketOf(ADA), await sealTicket(keyRing(), ticketOf(ADA))])
    assert.equal(
      text(`GET /jobs/stream?ticket=${ticket}&after=1`),
      'GET /jobs/stream?ticket=[redacted]&after=1',
    )
  assert.equal(text(`job ${ADA}.`), `job ${ADA}.`)
})
