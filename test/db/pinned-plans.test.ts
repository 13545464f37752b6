import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { exchangeText } from '../../db/queries/exchange-text.ts'
import { claimLoneJob } from '../../db/queries/lone-claim.ts'
import { PINNED_PLAN } from '../../worker-runtime/database.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let client: pg.Client

before(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: asLogin(database.url, 'workers') })
  await client.connect()
  for (const [name, value] of Object.entries(PINNED_PLAN)) await client.query(`set ${name} = ${value}`)
})
after(async () => {
  await client.end()
  await database.drop()
})

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[]; [property: string]: unknown }

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** What a scan is narrowed by. Without any it reads the whole table. */
const CONDITIONS = ['Index Cond', 'Recheck Cond', 'TID Cond']

/** Read in their order up to a limit; and few: pauses, limits of running jobs by an index that has no others, leases. */
const MAY_BE_READ = ['ready_jobs', 'pauses', 'quotas', 'leases']

/** The tables that a plan reads whole. */
const readWhole = async (text: string): Promise<string[]> => {
  const { rows } = await client.query(`explain (generic_plan, format json) ${text}`)
  return nodesOf(rows[0]['QUERY PLAN'][0].Plan)
    .filter((node) => !CONDITIONS.some((condition) => condition in node))
    .filter((node) => node['Node Type'].endsWith('Scan'))
    .flatMap((scan) => scan['Relation Name'] ?? [])
    .filter((table) => !MAY_BE_READ.includes(table))
}

const ORDERS = [
  { order: 'rank', reranked: false },
  { order: 'rank', reranked: true },
  { order: 'age', reranked: false },
] as const

const everyText = (): { name: string; text: string }[] => {
  const either = [false, true]
  return ORDERS.flatMap(({ order, reranked }) => [
    claimLoneJob({ workerId: 'w', leaseSeconds: 30, types: [], order }),
    ...(['none', 'completed', 'checked'] as const).flatMap((ends) =>
      either.flatMap((sized) =>
        either.flatMap((restricted) =>
          either.flatMap((results) =>
            either.map((traced) =>
              exchangeText({ order, reranked, sized, restricted, traced, results, ends }),
            ),
          ),
        ),
      ),
    ),
  ])
}

/** A worker may start on an empty database and keep its plans: what they cost must not grow with what comes. */
const EMPTY_DATABASES = { 'that was never analysed': 'select', 'that was analysed': 'analyze' }

for (const [which, prepare] of Object.entries(EMPTY_DATABASES)) {
  test(`planned on an empty database ${which}, no claim and no exchange reads a whole table`, async () => {
    await database.sql(prepare)
    for (const { name, text } of everyText()) assert.deepEqual(await readWhole(text), [], name)
  })
}
