/** Ticks as the clocks of their time zone show them: that is what the expression means. */
export const tickTime = (at: string, timezone: string, cron: string): string =>
  formatFor(timezone, (cron.match(/\S+/g)?.length ?? 0) > 5).format(new Date(at))

const formats = new Map<string, Intl.DateTimeFormat>()

const formatFor = (timezone: string, hasSeconds: boolean): Intl.DateTimeFormat => {
  const key = `${timezone} ${hasSeconds}`
  const known = formats.get(key) ?? make(timezone, hasSeconds)
  formats.set(key, known)
  return known
}

const make = (timeZone: string, hasSeconds: boolean): Intl.DateTimeFormat => {
  const parts = {
    ...({ weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const),
    ...(hasSeconds && ({ second: '2-digit' } as const)),
  }
  try {
    return new Intl.DateTimeFormat('en-GB', { ...parts, timeZone })
  } catch {
    // A zone that the server knows and this browser does not.
    return new Intl.DateTimeFormat('en-GB', { ...parts, timeZone: 'UTC', timeZoneName: 'short' })
  }
}

/** All that this browser knows. UTC is not among them everywhere. */
export const timeZones = (): string[] => [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])]

export const ownTimeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
