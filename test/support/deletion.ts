import assert from 'node:assert/strict'
import { deleteOrg } from '../../db/queries/deletion.ts'
import type { Query } from '../../db/query.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, type TestDatabase } from './database.ts'
import type { Tenant } from './jobs.ts'
import { enterAs } from './sessions.ts'

/** Runs a query in a functions transaction that has entered the tenant's organisation. */
export const runAs = <Row>(database: TestDatabase, tenant: Tenant, query: Query<Row>): Promise<Row[]> =>
  withClient(asLogin(database.url, 'functions'), async (client) => {
    await client.query('begin')
    await enterAs(client, tenant)
    const { rows } = await client.query({ text: query.text, values: [...query.values] })
    await client.query('commit')
    return rows
  })

/** Deletes the organisation of a tenant that was not created through the API. */
export const closeOrg = async (database: TestDatabase, tenant: Tenant): Promise<void> => {
  const { orgId } = tenant
  const [org] = await database.sql<{ name: string }>('select name from smartqueue.orgs where id = $1', [
    orgId,
  ])
  assert.ok(org)
  const deletion = { orgId, name: org.name, passwordHash: 'none', sessionId: uuidV7(), spareOrgId: uuidV7() }
  const [closed] = await runAs(database, tenant, deleteOrg(deletion))
  assert.equal(closed?.outcome, 'deleted')
}

/** Backdates the deletion, so that all earlier transactions count as finished. */
export const settleDeletion = (database: TestDatabase, { orgId }: Tenant): Promise<unknown> =>
  database.sql(
    `update smartqueue.org_deletions set requested_at = requested_at - interval '1 hour' where id = $1`,
    [orgId],
  )
