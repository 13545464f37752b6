import type { WebhookScheme } from '../../db/queries/webhook-sources.ts'
import { toBase64 } from '../prediction/base64.ts'
import { secretBytes } from './verify.ts'

const SECRET_BYTES = 32

/** In the form that senders of the scheme expect. */
export const newSecret = (scheme: WebhookScheme): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES))
  if (scheme === 'standard-webhooks') return `whsec_${toBase64(bytes)}`
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Why the secret cannot be one of the scheme; undefined if it can. */
export const secretFault = (scheme: WebhookScheme, secret: string): string | undefined => {
  if (scheme !== 'standard-webhooks') return undefined
  const bytes = secretBytes(secret)?.length ?? 0
  if (bytes >= 24 && bytes <= 64) return undefined
  return 'must be whsec_ and the base64 of 24 to 64 bytes, or be left out: then one is made'
}
