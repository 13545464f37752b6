import type { ReceivingSourceRow } from '../../db/queries/webhook-sources.ts'
import type { Condition } from '../../db/rules/conditions.ts'
import type { Redactor } from '../redaction.ts'
import { redactorOf } from './journal.ts'
import { type Rules, readRules } from './plan.ts'
import { type HmacSettings, type Scheme, schemeOf } from './schemes.ts'
import type { Secrets } from './verify.ts'

/** A source, ready to receive: what its row says, read once. */
export type ReceivingSource = {
  readonly orgId: string
  readonly id: string
  readonly version: string
  readonly name: string
  readonly scheme: Scheme
  readonly secrets: Secrets
  readonly rules: Rules
  readonly redactor: Redactor
}

export const toReceiving = (row: ReceivingSourceRow): ReceivingSource => ({
  orgId: row.org_id,
  id: row.id,
  version: row.version,
  name: row.name,
  scheme: schemeOf(row.scheme, row.verification as HmacSettings),
  secrets: {
    current: row.secret,
    previous: row.previous_secret,
    previousExpiresAtMs: row.previous_expires_at ? Date.parse(row.previous_expires_at) : 0,
  },
  rules: readRules(row.filter as Condition | null, row.template),
  redactor: redactorOf([row.secret, row.previous_secret]),
})
