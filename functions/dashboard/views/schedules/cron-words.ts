/**
 * A cron expression in words, for people who do not read such. Only what can be said shortly and exactly is said: all else is
 * null, and the expression stands for itself.
 */
export const cronInWords = (cron: string): string | null => {
  const fields = (NICKNAMES[cron.trim().toLowerCase()] ?? cron)
    .toUpperCase()
    .replaceAll('?', '*')
    .match(/\S+/g)
  if (!fields || (fields.length !== 5 && fields.length !== 6)) return null
  const [second = '0', minute = '', hour = '', day = '', month = '', weekday = ''] =
    fields.length === 6 ? fields : ['0', ...fields]
  const time = timeInWords(second, minute, hour)
  const days = daysInWords(day, weekday)
  const months = monthsInWords(month)
  if (time === null || days === null || months === null) return null
  if (days === '' && time.startsWith('At ')) return join(`Every day at ${time.slice(3)}`, months)
  return join(time, days, months)
}

const NICKNAMES: Record<string, string> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

const join = (...parts: string[]): string => parts.filter(Boolean).join(' ')

const timeInWords = (second: string, minute: string, hour: string): string | null => {
  if (second !== '0') {
    const step = stepOf(second, 60)
    return step !== null && minute === '*' && hour === '*' ? every(step, 'second') : null
  }
  const step = stepOf(minute, 60)
  if (step !== null) return intervalInWords(every(step, 'minute'), hour)
  const minutes = numbersOf(minute)
  const hourStep = stepOf(hour, 24)
  if (minutes?.length === 1 && hourStep !== null) {
    return join(every(hourStep, 'hour'), minute === '0' ? '' : `at minute ${Number(minute)}`)
  }
  const range = rangeOf(hour)
  if (minutes?.length === 1 && range) {
    return `Every hour from ${clock(range[0], minutes[0])} to ${clock(range[1], minutes[0])}`
  }
  const hours = numbersOf(hour)
  if (!minutes || !hours || minutes.length * hours.length > 4) return null
  return `At ${list(hours.flatMap((h) => minutes.map((m) => clock(h, m))))}`
}

/** What is repeated all day, or for some hours of it. */
const intervalInWords = (repeated: string, hour: string): string | null => {
  if (hour === '*') return repeated
  const range = rangeOf(hour)
  return range ? `${repeated} from ${clock(range[0], 0)} to ${clock(range[1], 59)}` : null
}

const every = (step: number, unit: string): string =>
  step === 1 ? `Every ${unit}` : `Every ${step} ${unit}s`

/** Of a step that does not divide the whole, the last one is shorter: that is no "every". */
const stepOf = (field: string, whole: number): number | null => {
  if (field === '*') return 1
  const step = Number(field.match(/^(?:\*|0)\/(\d+)$/)?.[1])
  return step > 0 && step < whole && whole % step === 0 ? step : null
}

const numbersOf = (field: string): number[] | null =>
  /^\d+(,\d+)*$/.test(field)
    ? field
        .split(',')
        .map(Number)
        .toSorted((a, b) => a - b)
    : null

const rangeOf = (field: string): [number, number] | null => {
  const [, from, to] = field.match(/^(\d+)-(\d+)$/) ?? []
  return from !== undefined && Number(from) < Number(to) ? [Number(from), Number(to)] : null
}

const clock = (hour: number, minute = 0): string =>
  `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`

/** Of both, either counts. */
const daysInWords = (day: string, weekday: string): string | null => {
  const ofMonth = day === '*' ? '' : dayOfMonth(day)
  const ofWeek = weekday === '*' ? '' : dayOfWeek(weekday)
  if (ofMonth === null || ofWeek === null) return null
  return [ofMonth, ofWeek].filter(Boolean).join(' and ')
}

const dayOfMonth = (field: string): string | null => {
  if (field === 'L') return 'on the last day of the month'
  if (field === 'LW') return 'on the last weekday of the month'
  const [, near] = field.match(/^(\d+)W$/) ?? []
  if (near !== undefined) return `on the weekday nearest to the ${ordinal(Number(near))}`
  const range = rangeOf(field)
  if (range) return `from the ${ordinal(range[0])} to the ${ordinal(range[1])} of the month`
  const days = numbersOf(field)
  return days && `on the ${list(days.map(ordinal))} of the month`
}

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const
const NTH: Record<string, string> = {
  1: 'first',
  2: 'second',
  3: 'third',
  4: 'fourth',
  5: 'fifth',
  L: 'last',
}

const dayOfWeek = (field: string): string | null => {
  if (/^(MON|1)-(FRI|5)$/.test(field)) return 'on weekdays'
  if (/^(SAT|6),(SUN|0|7)$|^(SUN|0|7),(SAT|6)$|^(SAT|6)-(SUN|7)$/.test(field)) return 'at weekends'
  const [, which = '', nth = ''] = field.match(/^(\w+)#([1-5L])$/) ?? []
  const special = dayName(which)
  if (special) return `on the ${NTH[nth]} ${special} of the month`
  const [, from = '', to = ''] = field.match(/^(\w+)-(\w+)$/) ?? []
  const [first, last] = [dayName(from), dayName(to)]
  if (first && last) return `from ${first} to ${last}`
  const names = field.split(',').map(dayName)
  return names.every((name) => name !== undefined) ? `on ${list(names.map((name) => `${name}s`))}` : null
}

const dayName = (text: string): string | undefined =>
  /^[0-7]$/.test(text) ? DAYS[Number(text)] : DAYS.find((name) => name.slice(0, 3).toUpperCase() === text)

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]

const monthsInWords = (field: string): string | null => {
  if (field === '*') return ''
  const [, from = '', to = ''] = field.match(/^(\w+)-(\w+)$/) ?? []
  const [first, last] = [monthName(from), monthName(to)]
  if (first && last) return `from ${first} to ${last}`
  const names = field.split(',').map(monthName)
  return names.every((name) => name !== undefined) ? `in ${list(names)}` : null
}

const monthName = (text: string): string | undefined =>
  /^\d+$/.test(text)
    ? MONTHS[Number(text) - 1]
    : MONTHS.find((name) => name.slice(0, 3).toUpperCase() === text)

const ordinals = new Intl.PluralRules('en', { type: 'ordinal' })
const ENDINGS: Record<string, string> = { one: 'st', two: 'nd', few: 'rd' }
const ordinal = (n: number): string => `${n}${ENDINGS[ordinals.select(n)] ?? 'th'}`

const lists = new Intl.ListFormat('en-GB', { type: 'conjunction' })
const list = (items: readonly string[]): string => lists.format(items)
