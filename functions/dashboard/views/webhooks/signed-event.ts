import type { Source } from '../../api/answers.ts'

type Signing = Pick<Source, 'scheme' | 'url' | 'verification'>

/** Commands that send an event to a source from a shell, signed as its sender would. Only the secret is left to fill in. */
export const signedEvent = ({ scheme, url, verification: how }: Signing): string => {
  const signature = `${how.prefix}$SIGNATURE`
  // Stripe has time and signature in one header.
  const isShared = how.timestamp_header === how.signature_header
  const headers = [
    'content-type: application/json',
    how.id_header && `${how.id_header}: $ID`,
    how.type_header && `${how.type_header}: ${TYPES[scheme]}`,
    how.timestamp_header && !isShared && `${how.timestamp_header}: $TIME`,
    `${how.signature_header}: ${isShared ? `t=$TIME,${signature}` : signature}`,
  ].filter(Boolean)
  return [
    "SECRET='…'",
    `BODY='${JSON.stringify(BODIES[scheme])}'`,
    'ID=first TIME=$(date +%s)',
    `SIGNATURE=$(printf '%s' "${contentOf(how)}" | ${digestOf(scheme, how)})`,
    `curl -s '${url}' \\`,
    ...headers.map((header) => `  -H "${header}" \\`),
    '  --data-binary "$BODY"',
  ].join('\n')
}

/** Events that the examples of filter and template take. */
const BODIES: Record<Source['scheme'], unknown> = {
  github: { ref: 'refs/heads/main', after: '6113728f', repository: { full_name: 'octocat/hello' } },
  stripe: { id: 'evt_1', type: 'invoice.paid', data: { object: { id: 'in_1', customer: 'cus_1' } } },
  'standard-webhooks': { type: 'contact.created', data: { id: 7 } },
  hmac: { id: 'r-17', type: 'reading', celsius: 21.5 },
}

const TYPES: Record<Source['scheme'], string> = {
  github: 'push',
  stripe: 'invoice.paid',
  'standard-webhooks': 'contact.created',
  hmac: 'reading',
}

const contentOf = ({ content }: Source['verification']): string =>
  content.replace('{body}', '$BODY').replace('{timestamp}', '$TIME').replace('{id}', '$ID')

/** The key of Standard Webhooks is what the base64 after `whsec_` stands for. */
const digestOf = (scheme: Source['scheme'], { algorithm, encoding }: Source['verification']): string => {
  const key =
    scheme === 'standard-webhooks'
      ? `-mac HMAC -macopt "hexkey:$(printf '%s' "$SECRET" | sed 's/^whsec_//' | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')"`
      : '-hmac "$SECRET"'
  const digest = `openssl dgst -${algorithm} ${key}`
  return encoding === 'base64' ? `${digest} -binary | openssl base64 -A` : `${digest} | sed 's/.* //'`
}
