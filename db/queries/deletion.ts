/** Deletes organisations and accounts, see `db/accounts/deletion.sql` and ADR 21. */
import type { Page, Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'

export type OrgDeletion =
  | { outcome: 'deleted'; next_org_id: string }
  | { outcome: 'unknown' | 'wrong_name' | 'refused'; next_org_id: null }

/** Closes the organisation immediately. The leader removes its rows. */
export const deleteOrg = (deletion: {
  orgId: string
  name: string
  /** Of the password that the caller has entered again. */
  passwordHash: string
  sessionId: string
  /** The id of a new personal organisation, for a caller who has no other. */
  spareOrgId: string
}): Query<OrgDeletion> => ({
  name: 'delete-org',
  text: `
    select outcome, next_org_id
    from smartqueue.delete_org($1::uuid, $2::text, $3::text, $4::uuid, $5::uuid)`,
  values: [deletion.orgId, deletion.name, deletion.passwordHash, deletion.sessionId, deletion.spareOrgId],
})

type NamedOrg = { id: string; name: string }

export type AccountDeletion =
  | { outcome: 'deleted' | 'blocked'; orgs: NamedOrg[] }
  | { outcome: 'refused'; orgs: null }

/** Deletes the account that the transaction has entered as. */
export const deleteAccount = (passwordHash: string): Query<AccountDeletion> => ({
  name: 'delete-account',
  text: `
    select outcome, orgs
    from smartqueue.delete_account($1::text)`,
  values: [passwordHash],
})

/** What happens to an organisation when the account of one of its members is deleted. */
export const ORG_FATES = ['left', 'deleted', 'blocks'] as const

export type OwnOrg = NamedOrg & { role: MemberRole; on_deletion: (typeof ORG_FATES)[number] }

/** The organisations of the user that the transaction has entered as, oldest membership first. */
export const listOwnOrgs = (): Query<OwnOrg> => ({
  name: 'list-own-orgs',
  text: `
    select id, name, role, on_deletion
    from smartqueue.own_orgs()`,
  values: [],
})

export type OrgDeletionRow = {
  id: string
  requested_at: string
  requested_by: string | null
  request_id: string | null
  removed_at: string | null
}

/** Ordered by organisation id. */
export const listOrgDeletions = (page: Page): Query<OrgDeletionRow> => ({
  name: 'list-org-deletions',
  text: `
    select id, requested_at, requested_by, request_id, removed_at
    from smartqueue.org_deletions
    where $1::uuid is null or id > $1::uuid
    order by id
    limit $2::int`,
  values: [page.after, page.limit],
})

export type RemovedBatch = {
  org_id: string
  removed: number
  /** Workers that lost running jobs of this or another deleted organisation. */
  worker_ids: string[]
  finished: boolean
}

/** Removes up to `limit` rows of a deleted organisation. No row: nothing to remove now, or the term is over. */
export const removeDeletedOrg = (term: string, limit: number): Query<RemovedBatch> => ({
  name: 'remove-deleted-org',
  text: `
    select deleted_org as org_id, removed, told_workers as worker_ids, finished
    from smartqueue.remove_deleted_org($1::bigint, $2::int)`,
  values: [term, limit],
})
