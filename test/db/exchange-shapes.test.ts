import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Database } from '../../worker-runtime/database.ts'
import { connectPinned, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  exchange,
  misplacedJobs,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let pinned: Database
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  pinned = connectPinned(database.url)
})
after(async () => {
  await pinned.close()
  await database.drop()
})
beforeEach(() => clearJobs(database.sql))

const ORDERS = [
  { order: 'rank', reranked: false },
  { order: 'rank', reranked: true },
  { order: 'age', reranked: false },
] as const

for (const { order, reranked } of ORDERS) {
  for (const sized of [null, { freeCpuUnits: 4, freeMemoryMb: 1_000, ahead: 0 }]) {
    for (const result of [null, { fine: true }]) {
      for (const ends of ['completed', 'checked', 'retried'] as const) {
        // Nothing is paused: a claim gets the same whether it looks or not.
        const restricted = ends === 'checked'
        const parts = [
          order,
          reranked && 'reranked',
          sized && 'sized',
          restricted && 'restricted',
          result && 'results',
          ends,
        ]
        const shape = parts.filter(Boolean)
        test(`one exchange ends, claims and moves each job once: ${shape.join(', ')}`, async () => {
          await seedJobs(database.run, tenant, [newJob(), newJob()])
          const [first, second] = await claim(database.run)
          assert.ok(first && second)
          const deadline = new Date(Date.now() + 1_000).toISOString()
          const next = await seedJobs(database.run, tenant, [
            newJob({ name: 'late', priority: 'low' }),
            newJob({ name: 'next' }),
            newJob({ name: 'urgent', priority: 'low', deadline }),
          ])
          const { news, claimed } = await exchange(pinned.run, {
            ended: [
              completed(first, result),
              ends === 'retried' ? retrying(second, 60_000) : completed(second),
            ],
            closed: [first.token],
            ...(ends === 'completed' && { leaseJobs: 2 }),
            claim: { limit: 3, order, reranked, sized, restricted },
          })
          assert.deepEqual([news.lost ?? null, news.recorded ?? true], [null, true])
          const expected = order === 'age' ? ['urgent', 'late', 'next'] : ['urgent', 'next', 'late']
          assert.deepEqual(
            claimed.map(({ name }) => name),
            expected,
          )
          const { statuses, look } = watchJobs(database.sql)
          const ids = [first.job_id, second.job_id, ...next]
          const end = ends === 'retried' ? 'retrying' : 'completed'
          assert.deepEqual(await statuses(ids), ['completed', end, 'running', 'running', 'running'])
          assert.deepEqual((await look(first.job_id)).result, result)
          assert.deepEqual(await misplacedJobs(database.sql), [])
          assert.equal((await database.sql('select from leases')).length, 1)
        })
      }
    }
  }
}
