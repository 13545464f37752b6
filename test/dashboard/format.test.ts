import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bytes,
  count,
  duration,
  percent,
  relativeTime,
  seconds,
  shortCount,
} from '../../functions/dashboard/ui/format.ts'

test('a duration has the unit that fits it', () => {
  const cases: [number | null, string][] = [
    [0.4, '0.4 ms'],
    [8, '8 ms'],
    [340.4, '340 ms'],
    [999.7, '1.0 s'],
    [1_234, '1.2 s'],
    [45_000, '45 s'],
    [59_700, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [12_000_000, '3 h 20 min'],
    [90_000_000, '1 d 1 h'],
    [-1_500, '−1.5 s'],
    [null, '–'],
  ]
  for (const [ms, text] of cases) assert.equal(duration(ms), text, String(ms))
  assert.equal(seconds(2.5), '2.5 s')
  assert.equal(duration(Number.NaN), '–')
})

test('a relative time is whole, and says in which direction', () => {
  const now = Date.UTC(2026, 10, 17)
  assert.equal(relativeTime(now - 900, now), 'now')
  assert.equal(relativeTime(now - 5_000, now), '5 s ago')
  assert.equal(relativeTime(now - 119_000, now), '1 min ago')
  assert.equal(relativeTime(now + 7_200_000, now), 'in 2 h')
  assert.equal(relativeTime(now - 200_000_000, now), '2 d ago')
})

test('numbers have their separators and units', () => {
  assert.equal(count(1_234_567), '1,234,567')
  assert.equal(count(undefined), '–')
  assert.equal(shortCount(9_999), '9,999')
  assert.equal(shortCount(12_345), '12.3 k')
  assert.equal(percent(0.9234), '92.3 %')
  assert.equal(percent(null), '–')
  assert.equal(bytes(0), '0 B')
  assert.equal(bytes(53_687_091_200), '50 GiB')
})
