/** The order matters: most browsers also claim to be those listed below them. */
const BROWSERS = {
  'Edg/': 'Edge',
  'OPR/': 'Opera',
  'Firefox/': 'Firefox',
  'Chrome/': 'Chrome',
  'Safari/': 'Safari',
}
const SYSTEMS = {
  iPhone: 'iPhone',
  iPad: 'iPad',
  Android: 'Android',
  Windows: 'Windows',
  'Mac OS X': 'macOS',
  Linux: 'Linux',
}

/** `Firefox on Windows`, or the product name of a program's user agent. */
export const deviceOf = (userAgent: string | null): string => {
  if (!userAgent) return 'Unknown device'
  const find = (names: Record<string, string>): string | undefined =>
    Object.entries(names).find(([mark]) => userAgent.includes(mark))?.[1]
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)]
  if (browser && system) return `${browser} on ${system}`
  return browser ?? userAgent.split(/[ /(]/)[0]?.slice(0, 40) ?? 'Unknown device'
}
