import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextTicks, ticksBetween } from '../../db/rules/cron.ts'
import { checkCron } from '../../functions/schedules/check-cron.ts'

const short = (ticks: readonly Date[]): string[] =>
  ticks.map((tick) => tick.toISOString().replace(/(:00)?\.000Z$/, 'Z'))

/** A schedule, its zone, from when on, and the ticks that follow, in UTC. */
type Case = [cron: string, zone: string, after: string, ticks: string[]]

const BERLIN_SPRING = '2026-03-28T00:00Z'
const BERLIN_AUTUMN = '2026-10-24T00:00Z'

/** 2026-03-29 has no 02:00 to 03:00 in Berlin, 2026-10-25 has it twice; New York: 2026-03-08 and 2026-11-01. */
const DST: Record<string, Case> = {
  'a time that the clock skips comes in the moment of the jump': [
    '30 2 * * *',
    'Europe/Berlin',
    BERLIN_SPRING,
    ['2026-03-28T01:30Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z', '2026-03-31T00:30Z'],
  ],
  'a time that the clock shows twice comes when it shows it first': [
    '30 2 * * *',
    'Europe/Berlin',
    BERLIN_AUTUMN,
    ['2026-10-24T00:30Z', '2026-10-25T00:30Z', '2026-10-26T01:30Z', '2026-10-27T01:30Z'],
  ],
  'the very hour of the jump': [
    '0 2 * * *',
    'Europe/Berlin',
    BERLIN_SPRING,
    ['2026-03-28T01:00Z', '2026-03-29T01:00Z', '2026-03-30T00:00Z'],
  ],
  'the very hour that is repeated': [
    '0 2 * * *',
    'Europe/Berlin',
    BERLIN_AUTUMN,
    ['2026-10-25T00:00Z', '2026-10-26T01:00Z', '2026-10-27T01:00Z'],
  ],
  'in New York in spring': [
    '30 2 * * *',
    'America/New_York',
    '2026-03-07T00:00Z',
    ['2026-03-07T07:30Z', '2026-03-08T07:00Z', '2026-03-09T06:30Z'],
  ],
  'in New York in autumn': [
    '30 1 * * *',
    'America/New_York',
    '2026-10-31T00:00Z',
    ['2026-10-31T05:30Z', '2026-11-01T05:30Z', '2026-11-02T06:30Z'],
  ],
  'of several times a day none is lost': [
    '30 2,14 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00Z',
    ['2026-03-28T13:30Z', '2026-03-29T01:00Z', '2026-03-29T12:30Z', '2026-03-30T00:30Z'],
  ],
  'of several times a day none comes twice': [
    '30 2,14 * * *',
    'Europe/Berlin',
    '2026-10-24T12:00Z',
    ['2026-10-24T12:30Z', '2026-10-25T00:30Z', '2026-10-25T13:30Z', '2026-10-26T01:30Z'],
  ],
  'several that the clock skips, and one that it jumps to, are one tick': [
    '0,30 2,3 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00Z',
    ['2026-03-29T01:00Z', '2026-03-29T01:30Z', '2026-03-30T00:00Z'],
  ],
  'midnight, where that is what is skipped': [
    '0 0 * * *',
    'Africa/Cairo',
    '2026-04-22T12:00Z',
    ['2026-04-22T22:00Z', '2026-04-23T22:00Z', '2026-04-24T21:00Z'],
  ],
  'a jump that ends on the next day': [
    '30 23 * * *',
    'America/Nuuk',
    '2026-03-27T12:00Z',
    ['2026-03-28T01:30Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z'],
  ],
  'half an hour of daylight saving': [
    '45 1 * * *',
    'Australia/Lord_Howe',
    '2026-04-03T12:00Z',
    ['2026-04-03T14:45Z', '2026-04-04T14:45Z', '2026-04-05T15:15Z'],
  ],
  'every quarter of an hour when the clock jumps': [
    '*/15 * * * *',
    'Europe/Berlin',
    '2026-03-29T00:30Z',
    ['2026-03-29T00:45Z', '2026-03-29T01:00Z', '2026-03-29T01:15Z', '2026-03-29T01:30Z'],
  ],
  'every two hours by the clock, that of even hours': [
    '0 */2 * * *',
    'Europe/Berlin',
    '2026-10-24T21:00Z',
    ['2026-10-24T22:00Z', '2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T03:00Z'],
  ],
}

const CALENDAR: Record<string, Case> = {
  'a zone without whole hours': [
    '0 9 * * *',
    'Asia/Kathmandu',
    '2026-01-01T00:00Z',
    ['2026-01-01T03:15Z', '2026-01-02T03:15Z'],
  ],
  'the leap day': [
    '0 0 29 2 *',
    'UTC',
    '2026-01-01T00:00Z',
    ['2028-02-29T00:00Z', '2032-02-29T00:00Z', '2036-02-29T00:00Z'],
  ],
  'no leap day in 2100': [
    '0 0 29 2 *',
    'UTC',
    '2095-01-01T00:00Z',
    ['2096-02-29T00:00Z', '2104-02-29T00:00Z'],
  ],
  'the last day of the month': [
    '0 12 L * *',
    'UTC',
    '2028-01-15T00:00Z',
    ['2028-01-31T12:00Z', '2028-02-29T12:00Z', '2028-03-31T12:00Z', '2028-04-30T12:00Z'],
  ],
  'the last Friday, and the second Tuesday': [
    '0 8 * * FRI#L,TUE#2',
    'UTC',
    '2026-01-01T00:00Z',
    ['2026-01-13T08:00Z', '2026-01-30T08:00Z', '2026-02-10T08:00Z'],
  ],
  'a day of the month or a day of the week, if both are given': [
    '0 0 1 * MON',
    'UTC',
    '2026-01-28T00:00Z',
    ['2026-02-01T00:00Z', '2026-02-02T00:00Z', '2026-02-09T00:00Z'],
  ],
  'Sunday as 0 and as 7': [
    '0 0 * * 0,7',
    'UTC',
    '2026-01-28T00:00Z',
    ['2026-02-01T00:00Z', '2026-02-08T00:00Z'],
  ],
  seconds: [
    '5,35 0 * * * *',
    'UTC',
    '2026-01-01T00:00:10Z',
    ['2026-01-01T00:00:35Z', '2026-01-01T01:00:05Z', '2026-01-01T01:00:35Z'],
  ],
  '@daily, in its zone': [
    '@daily',
    'America/New_York',
    '2026-03-07T12:00Z',
    ['2026-03-08T05:00Z', '2026-03-09T04:00Z'],
  ],
  '@hourly': ['@hourly', 'UTC', '2026-01-01T00:00:00.001Z', ['2026-01-01T01:00Z', '2026-01-01T02:00Z']],
}

for (const [what, [cron, zone, after, ticks]] of Object.entries({ ...DST, ...CALENDAR })) {
  test(`${what}: ${cron} in ${zone}`, () => {
    const from = new Date(after)
    assert.deepEqual(short(nextTicks(cron, zone, from, ticks.length)), ticks)
    const last = new Date(ticks.at(-1) ?? '')
    assert.deepEqual(short(ticksBetween(cron, zone, from, last, 100)), ticks, 'and looking back')
    assert.deepEqual(short(ticksBetween(cron, zone, from, last, 2)), ticks.slice(-2), 'the newest')
    assert.equal(checkCron(cron, zone), undefined)
  })
}

const CHANGES = [
  ['Europe/Berlin', '2026-03-29'],
  ['Europe/Berlin', '2026-10-25'],
  ['America/New_York', '2026-03-08'],
  ['America/New_York', '2026-11-01'],
  ['Australia/Lord_Howe', '2026-04-05'],
  ['Australia/Lord_Howe', '2026-10-04'],
  ['America/Nuuk', '2026-03-29'],
  ['Africa/Cairo', '2026-10-30'],
] as const

test('every quarter of an hour is every quarter of an hour, whatever the clocks do', () => {
  for (const [zone, day] of CHANGES) {
    const noonBefore = Date.parse(`${day}T12:00Z`) - 86_400_000
    const expected = Array.from({ length: 144 }, (_, n) => new Date(noonBefore + (n + 1) * 900_000))
    const ticks = nextTicks('*/15 * * * *', zone, new Date(noonBefore), 144)
    assert.deepEqual(ticks, expected, zone)
    const looked = ticksBetween('*/15 * * * *', zone, new Date(noonBefore), expected[143] as Date, 1_000)
    assert.deepEqual(looked, expected, `${zone}, looking back`)
  }
})

test('whatever the time of the day, it comes once a day, also where the clocks change', () => {
  for (const [zone, day] of CHANGES) {
    const from = new Date(Date.parse(`${day}T12:00Z`) - 3 * 86_400_000)
    for (const hour of [0, 1, 2, 3, 22, 23]) {
      for (const minute of [0, 30]) {
        const cron = `${minute} ${hour} * * *`
        const ticks = nextTicks(cron, zone, from, 6)
        const hours = ticks
          .slice(1)
          .map((tick, n) => (tick.getTime() - (ticks[n]?.getTime() ?? 0)) / 3_600_000)
        assert.ok(
          hours.every((between) => between >= 23 && between <= 25),
          `${cron} in ${zone}: ${hours} hours between`,
        )
        assert.deepEqual(
          ticksBetween(cron, zone, from, ticks[5] as Date, 9),
          ticks,
          `${cron} in ${zone}, back`,
        )
      }
    }
  }
})

test('a moment is not after itself, and a tick in the middle of a second that has begun is found', () => {
  const noon = new Date('2026-01-01T12:00Z')
  const at = (ms: number): Date => new Date(noon.getTime() + ms)
  for (const cron of ['0 * * * *', '0 12 * * *']) {
    assert.notDeepEqual(nextTicks(cron, 'UTC', noon, 1), [noon])
    assert.deepEqual(nextTicks(cron, 'UTC', at(-1), 1), [noon])
    assert.deepEqual(ticksBetween(cron, 'UTC', at(-1), at(1), 9), [noon])
    assert.deepEqual(ticksBetween(cron, 'UTC', at(-1), noon, 9), [noon])
    assert.deepEqual(ticksBetween(cron, 'UTC', at(-999), at(-1), 9), [])
    assert.deepEqual(ticksBetween(cron, 'UTC', noon, at(999), 9), [])
  }
})

test('names of zones are taken however they are written, and only names', () => {
  for (const zone of ['UTC', 'europe/berlin', 'US/Eastern', 'Etc/GMT+5']) {
    assert.equal(checkCron('0 0 * * *', zone), undefined, zone)
  }
  for (const zone of ['', 'Mars/Olympus', '+02:00', 'UTC+2', ' UTC', 'local']) {
    assert.equal(checkCron('0 0 * * *', zone)?.field, 'timezone', zone)
  }
})

const FAULTS: [cron: string, detail: RegExp][] = [
  ['', /must have 5 fields .* it has 0/],
  ['* * * *', /must have 5 fields .* it has 4/],
  ['* * * * * * *', /it has 7/],
  ['2026-05-01T00:00:00', /must have 5 fields/],
  ['60 * * * *', /has "60" as the minute, which takes 0-59/],
  ['* 24 * * *', /has "24" as the hour, which takes 0-23/],
  ['* * 32 * *', /has "32" as the day of month, which takes 1-31/],
  ['* * * 13 *', /has "13" as the month, which takes 1-12 or JAN-DEC/],
  ['* * * * 8', /has "8" as the day of week, which takes 0-7/],
  ['0 9 * * FRIDAY', /has "FRIDAY" as the day of week, which takes 0-7, MON-SUN/],
  ['61 0 9 * * *', /has "61" as the second/],
  ['5-1 * * * *', /larger/],
  ['*/0 * * * *', /stepping/],
  ['5/10 * * * *', /stepping/],
  ['a b c d e', /has "a" as the minute/],
  ['0 0 30 2 *', /never comes/],
  ['0 0 31 4,6,9,11 *', /never comes/],
  ['@reboot', /must be one of @hourly/],
  ['@every 5m', /must be one of @hourly/],
  ['* * * * * *', /some are 1 apart/],
  ['*/7 * * * * *', /some are 4 apart/],
  ['0,55 * * * * *', /some are 5 apart/],
]

for (const [cron, detail] of FAULTS) {
  test(`"${cron}" is no schedule`, () => {
    const fault = checkCron(cron, 'UTC')
    assert.equal(fault?.field, 'cron')
    assert.match(fault.detail, detail)
  })
}
