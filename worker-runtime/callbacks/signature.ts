import { createHmac } from 'node:crypto'

export type SignedMessage = { id: string; timestampSeconds: number; body: string }

/**
 * The headers of a message, as the Standard Webhooks specification has them: HMAC-SHA256 over id, time and the very bytes
 * of the body, once for each secret. The receiver takes any that fits.
 */
export const signedHeaders = (
  { id, timestampSeconds, body }: SignedMessage,
  secrets: readonly string[],
): Record<string, string> => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestampSeconds),
  'webhook-signature': secrets
    .map((secret) => `v1,${sign(secret, `${id}.${timestampSeconds}.${body}`)}`)
    .join(' '),
})

const PREFIX = 'whsec_'

const sign = (secret: string, content: string): string =>
  createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
    .update(content)
    .digest('base64')
