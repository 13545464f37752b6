/** How numbers, durations and times read. Units are always shown; a missing value is a dash. */

export const DASH = '–'

const counts = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const decimals = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? DASH : counts.format(value)

/** 0 jobs · 1 job · 1,234 jobs */
export const counted = (value: number, thing: string): string => `${count(value)} ${things(value, thing)}`

/** The word for so many of them. */
export const things = (value: number | undefined, thing: string): string =>
  value === 1 ? thing : `${thing}s`

export const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** 1,234 · 12.3 k · 4.5 M */
export const shortCount = (value: number): string => {
  if (Math.abs(value) < 10_000) return counts.format(value)
  if (Math.abs(value) < 1_000_000) return `${decimals.format(value / 1_000)} k`
  return `${decimals.format(value / 1_000_000)} M`
}

export const rate = (value: number | null | undefined): string =>
  value === null || value === undefined ? DASH : value >= 100 ? counts.format(value) : decimals.format(value)

export const percent = (share: number | null | undefined, digits = 1): string =>
  share === null || share === undefined
    ? DASH
    : `${new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(share * 100)} %`

const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
] as const

/** 8 ms · 340 ms · 1.2 s · 45 s · 2 min 5 s · 3 h 20 min */
export const duration = (ms: number | null | undefined): string => {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return DASH
  const size = Math.abs(ms)
  const sign = ms < 0 ? '−' : ''
  if (size < 999.5) return `${sign}${size < 9.95 ? decimals.format(size) : counts.format(size)} ms`
  if (size < 9_950) return `${sign}${(size / 1_000).toFixed(1)} s`
  if (size < 59_500) return `${sign}${counts.format(size / 1_000)} s`
  return sign + longDuration(size)
}

const longDuration = (ms: number): string => {
  const place = UNITS.findIndex((unit) => ms >= unit.ms * 0.992)
  const unit = UNITS[place] ?? UNITS[2]
  const next = UNITS[place + 1] ?? { name: 's', ms: 1_000 }
  const inNext = Math.round(ms / next.ms)
  const perUnit = unit.ms / next.ms
  const [whole, rest] = [Math.floor(inNext / perUnit), inNext % perUnit]
  return rest === 0 ? `${whole} ${unit.name}` : `${whole} ${unit.name} ${rest} ${next.name}`
}

export const seconds = (value: number | null | undefined): string =>
  duration(value === null || value === undefined ? value : value * 1_000)

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export const bytes = (value: number): string => {
  const power = value < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log2(value) / 10))
  return `${decimals.format(value / 1024 ** power)} ${BYTES[power]}`
}

/** 3 s ago · in 2 min */
export const relativeTime = (at: number, now: number): string => {
  const ms = at - now
  const size = Math.abs(ms)
  if (size < 1_500) return 'now'
  const unit = UNITS.find((one) => size >= one.ms) ?? { name: 's', ms: 1_000 }
  const text = `${counts.format(Math.floor(size / unit.ms + 1e-3))} ${unit.name}`
  return ms < 0 ? `${text} ago` : `in ${text}`
}

const exact = new Intl.DateTimeFormat('en-GB', {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  timeZoneName: 'short',
})

export const exactTime = (at: string | number): string => exact.format(new Date(at))

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

/** For axes and tables of charts: the hour of a day, or a day with its hour where there are several. */
export const chartTime = (at: string | number, spansDays: boolean): string =>
  (spansDays ? day : clock).format(new Date(at))
