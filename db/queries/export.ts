/** The data of an organisation or a person as lines of JSON, which Postgres builds. See `db/accounts/export.sql`. */
import type { Query } from '../query.ts'

/** `line` is null if there was nothing to write at this position but more may follow. */
export type ExportLine = { position: string; line: string | null }

export type ExportStep = {
  readonly type: string
  readonly page: (ownerId: string, after: string | null) => Query<ExportLine>
  /** The format of positions. */
  readonly position: RegExp
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const UUID_AND_NUMBER = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/\d{19}$/
const NUMBER = /^\d{1,18}$/

const step = (owner: 'org' | 'user', type: string, position = UUID): ExportStep => ({
  type,
  position,
  page: (ownerId, after) => ({
    name: 'export-page',
    text: `
    select key as position, line
    from smartqueue.export_page($1::text, $2::uuid, $3::text, $4::text)`,
    values: [owner, ownerId, type, after],
  }),
})

/** The types of lines, in the order in which they are exported. */
export const ORG_EXPORT: readonly ExportStep[] = [
  step('org', 'organisation'),
  step('org', 'member'),
  step('org', 'invitation'),
  step('org', 'api_key'),
  step('org', 'schedule'),
  step('org', 'webhook_source'),
  step('org', 'webhook_delivery'),
  step('org', 'callback_endpoint'),
  step('org', 'job'),
  step('org', 'job_log', UUID_AND_NUMBER),
  step('org', 'audit_entry', NUMBER),
]

export const ACCOUNT_EXPORT: readonly ExportStep[] = [
  step('user', 'account'),
  step('user', 'membership'),
  step('user', 'sign_in'),
  step('user', 'api_key'),
  step('user', 'invitation'),
]
