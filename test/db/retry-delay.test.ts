import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let database: TestDatabase
before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())

type Policy = { attempt?: number; delay?: number; multiplier?: number; retryAfter?: number | 'NaN' | null }

/** The least and the greatest of a thousand delays. */
const rangeOf = async ({ attempt = 1, delay = 1, multiplier = 2, retryAfter = null }: Policy) => {
  const [range] = await database.sql<{ least: number; most: number }>(
    `select min(ms) as least, max(ms) as most
    from generate_series(1, 1000) as n
    cross join lateral (
      select retry_delay_ms(
        $1::integer, $2::double precision, $3::double precision, $4::double precision + 0 * n
      ) as ms
    ) as d`,
    [attempt, delay, multiplier, retryAfter],
  )
  assert.ok(range)
  return range
}

const isSpread = ({ least, most }: { least: number; most: number }, from: number, to: number): void => {
  assert.ok(least >= from && least < from + (to - from) * 0.1, `the least is ${least}`)
  assert.ok(most <= to && most > to - (to - from) * 0.1, `the most is ${most}`)
}

test('a delay is drawn from all of the backoff, which doubles from attempt to attempt', async () => {
  isSpread(await rangeOf({ attempt: 1, delay: 10 }), 0, 10_000)
  isSpread(await rangeOf({ attempt: 2, delay: 10 }), 0, 20_000)
  isSpread(await rangeOf({ attempt: 4, delay: 10 }), 0, 80_000)
})

test('a multiplier of one keeps the backoff', async () => {
  isSpread(await rangeOf({ attempt: 20, delay: 10, multiplier: 1 }), 0, 10_000)
})

test('the backoff is an hour at most, also where the power overflows', async () => {
  isSpread(await rangeOf({ attempt: 13 }), 0, HOUR_MS)
  isSpread(await rangeOf({ attempt: 2_147_483_647, multiplier: 10 }), 0, HOUR_MS)
  isSpread(await rangeOf({ attempt: 1, delay: 1e300 }), 0, HOUR_MS)
})

test('without an initial delay a job is retried at once', async () => {
  assert.deepEqual(await rangeOf({ attempt: 5, delay: 0 }), { least: 0, most: 0 })
})

test('the backoff is added to what the handler asks for, which is believed up to a day', async () => {
  isSpread(await rangeOf({ delay: 10, retryAfter: 60_000 }), 60_000, 70_000)
  isSpread(await rangeOf({ delay: 10, retryAfter: 2 * DAY_MS }), DAY_MS, DAY_MS + 10_000)
  assert.deepEqual(await rangeOf({ delay: 0, retryAfter: 1e300 }), { least: DAY_MS, most: DAY_MS })
})

test('what the handler asks for counts as nothing if it is negative or no number', async () => {
  assert.deepEqual(await rangeOf({ delay: 0, retryAfter: -5 }), { least: 0, most: 0 })
  assert.deepEqual(await rangeOf({ delay: 0, retryAfter: 'NaN' }), { least: 0, most: 0 })
  assert.deepEqual(await rangeOf({ delay: 0, retryAfter: null }), { least: 0, most: 0 })
})
