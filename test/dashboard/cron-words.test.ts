import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronInWords } from '../../functions/dashboard/views/schedules/cron-words.ts'

const WORDS: [cron: string, words: string | null][] = [
  ['* * * * *', 'Every minute'],
  ['*/10 * * * * *', 'Every 10 seconds'],
  ['*/15 * * * *', 'Every 15 minutes'],
  ['*/15 9-17 * * MON-FRI', 'Every 15 minutes from 09:00 to 17:59 on weekdays'],
  ['0 * * * *', 'Every hour'],
  ['5 * * * *', 'Every hour at minute 5'],
  ['30 */6 * * *', 'Every 6 hours at minute 30'],
  ['0 9-17 * * *', 'Every hour from 09:00 to 17:00'],
  ['30 2 * * *', 'Every day at 02:30'],
  ['0 30 2 * * *', 'Every day at 02:30'],
  ['30 2,14 * * *', 'Every day at 02:30 and 14:30'],
  ['30 6 * * MON-FRI', 'At 06:30 on weekdays'],
  ['0 8 * * 6,0', 'At 08:00 at weekends'],
  ['0 8 * * mon,wed,fri', 'At 08:00 on Mondays, Wednesdays and Fridays'],
  ['0 8 * * TUE-THU', 'At 08:00 from Tuesday to Thursday'],
  ['0 9 * * MON#1', 'At 09:00 on the first Monday of the month'],
  ['0 9 * * FRI#L', 'At 09:00 on the last Friday of the month'],
  ['0 0 1 * *', 'At 00:00 on the 1st of the month'],
  ['0 0 1,22 JAN,JUL *', 'At 00:00 on the 1st and 22nd of the month in January and July'],
  ['0 0 L * *', 'At 00:00 on the last day of the month'],
  ['0 0 15W * *', 'At 00:00 on the weekday nearest to the 15th'],
  ['0 0 1 * MON', 'At 00:00 on the 1st of the month and on Mondays'],
  ['0 0 * 3-5 *', 'Every day at 00:00 from March to May'],
  ['@daily', 'Every day at 00:00'],
  ['@yearly', 'At 00:00 on the 1st of the month in January'],
]

test('expressions that people use are said in words', () => {
  for (const [cron, words] of WORDS) assert.equal(cronInWords(cron), words, cron)
})

test('what cannot be said exactly is not said', () => {
  // 7 does not divide 60, +MON means both, and a list of ranges is no sentence.
  for (const cron of ['*/7 * * * *', '0 0 1 * +MON', '0 1-3,9-11 * * *', '0 0 30 2', '5 4 3', '', 'soon']) {
    assert.equal(cronInWords(cron), null, cron)
  }
})
