import type { Source } from '../../api/answers.ts'

/**
 * What a source of the scheme `hmac` has said of how it is signed: the API answers with all that follows from it. A default that
 * is sent is more than a default: with a `prefix`, signatures without one are no longer taken.
 */
export const verificationOf = ({
  verification,
}: Pick<Source, 'verification'>): Record<string, string | number> => {
  const defaults: Record<string, string | number> = {
    signature_header: 'x-signature',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: `${verification.algorithm}=`,
    tolerance_seconds: 300,
    content: verification.timestamp_header ? '{timestamp}.{body}' : '{body}',
    id_header: 'x-event-id',
    type_header: 'x-event-type',
  }
  const said = Object.entries(verification).filter(
    (entry): entry is [string, string | number] => entry[1] !== null && entry[1] !== defaults[entry[0]],
  )
  return Object.fromEntries(said)
}
