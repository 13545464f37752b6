/** What OpenTelemetry's environment variables may say. Both runtimes read them alike. */

export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type SamplerName = (typeof SAMPLERS)[number]

export const DEFAULT_SAMPLER: SamplerName = 'parentbased_always_on'

export const ENDPOINT_RULE = 'must be an http(s) URL, without /v1/traces, a password or a query'

/** Spans go to `/v1/traces` below it. */
export const tracesUrl = (endpoint: string): string => `${endpoint.replace(/\/+$/, '')}/v1/traces`

export const isEndpoint = (text: string): boolean => {
  const { protocol = '', username, password, search, pathname = '' } = URL.parse(text) ?? {}
  const isPlain = !username && !password && !search
  return /^https?:$/.test(protocol) && isPlain && !/\/v1\/traces\/*$/.test(pathname)
}

export const RATIO_RULE = 'must be a number from 0 to 1'

export const isRatio = (text: string): boolean => /^(0|1|0?\.\d+|[01]\.\d+)$/.test(text) && Number(text) <= 1

export const PAIRS_RULE = 'must be a list like name=value,name=value, with percent-encoded values'

/** `name=value,name=value`, the values percent-encoded. Undefined: it is none. */
export const parsePairs = (text: string): Record<string, string> | undefined => {
  const pairs: [string, string][] = []
  for (const part of text.split(',').map((piece) => piece.trim())) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e\x20]*)$/.exec(part) ?? []
    const meant = value === undefined ? undefined : decoded(value)
    if (part !== '' && (name === undefined || meant === undefined)) return undefined
    if (name !== undefined && meant !== undefined) pairs.push([name, meant])
  }
  return Object.fromEntries(pairs)
}

/** A line break in a header would begin another. */
const decoded = (text: string): string | undefined => {
  try {
    const meant = decodeURIComponent(text)
    return /[\0\r\n]/.test(meant) ? undefined : meant
  } catch {
    return undefined
  }
}

/** Headers say who may send: each value, and what stands behind `Bearer`. */
export const secretsOfHeaders = (text: string | undefined): string[] =>
  Object.values(parsePairs(text ?? '') ?? {}).flatMap((value) => [value, value.split(' ').at(-1) ?? ''])
