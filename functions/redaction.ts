/** Keeps secrets out of what is written down: by the name of a field, by their form, and by their value where it is known. */
export type Redactor = {
  text(text: string): string
  /** Text that may have fields: what stands behind the name of a secret, `token=…` or `"token": …`, is hidden, too. */
  unstructured(text: string): string
  /** Any value that is about to be written as JSON. */
  value(value: unknown): unknown
}

const HIDDEN = '[redacted]'

const SECRET_NAME =
  /passw(?:or)?d|passphrase|secret|token|authori[sz]ation|cookie|api[-_]?key|private[-_]?key|credential|connection[-_]?string|database[-_]?url|signature/i

/** The same with what stands after it, in a text. Bounded: a long word is not looked through again and again. */
const SECRET_FIELD = new RegExp(
  `((?:${SECRET_NAME.source})[\\w.-]{0,40}["']?)(\\s{0,9}[:=]\\s{0,9})` +
    `(?!\\[redacted\\])("(?:[^"\\\\]|\\\\.)*"?|'[^']*'?|[^\\s&,;"'}\\]]+)`,
  'gi',
)

/** Says which one, or how many, or when, and not what it is. */
const HARMLESS_NAME = /[-_](id|ids|at|prefix|count|days|seconds)$/i

/**
 * The prefixes of the secrets that the functions issue (functions/auth/secrets.ts). Every kind listed here is
 * redacted.
 */
export const SECRET_PREFIXES = {
  refresh: 'sqr_',
  'browser-refresh': 'sqb_',
  'api-key': 'sqk_',
  invitation: 'sqi_',
} as const

const SECRET_FORMS: [RegExp, string][] = [
  [new RegExp(`\\b(?:${Object.values(SECRET_PREFIXES).join('|')})[0-9a-f]{8,}`, 'g'), HIDDEN],
  // Stream tickets: an organisation id, random bits, and a seal.
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.[0-9a-f]{64}){1,2}/g, HIDDEN],
  // What webhooks are signed with, as Standard Webhooks writes it.
  [/\bwhsec_[\w+/=-]{8,}/g, HIDDEN],
  // JSON Web Tokens.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, HIDDEN],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  // The password of a URL.
  [/(?<![\w+.-])([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:/?#@]*:)[^\s@/]+@/gi, `$1${HIDDEN}@`],
]

/** A shorter one would be found in words that are none. */
const SHORTEST = 6
const DEEPEST = 8

/** What is nested deeper than `deepest` is hidden as a whole. */
export const createRedactor = (
  secrets: readonly (string | undefined)[] = [],
  { deepest = DEEPEST }: { deepest?: number } = {},
): Redactor => {
  const known = [...new Set(secrets)].filter((secret) => secret !== undefined && secret.length >= SHORTEST)

  const text = (given: string): string => {
    let safe = given
    for (const secret of known) safe = safe.replaceAll(secret as string, HIDDEN)
    for (const [form, instead] of SECRET_FORMS) safe = safe.replace(form, instead)
    return safe
  }

  const visit = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return text(value)
    if (typeof value !== 'object' || value === null || value instanceof Date) return value
    if (depth > deepest) return HIDDEN
    if (Array.isArray(value)) return value.map((item) => visit(item, depth + 1))
    return Object.fromEntries(
      Object.entries(value).map(([name, child]) => [
        name,
        isSecretName(name) && child !== null && child !== undefined ? HIDDEN : visit(child, depth + 1),
      ]),
    )
  }

  const unstructured = (given: string): string =>
    text(given).replace(SECRET_FIELD, (field, name: string, sign: string) =>
      isSecretName(name.replace(/["']$/, '')) ? `${name}${sign}${HIDDEN}` : field,
    )

  return { text, unstructured, value: (value) => visit(value, 0) }
}

const isSecretName = (name: string): boolean => SECRET_NAME.test(name) && !HARMLESS_NAME.test(name)

/** Where a connection string may hold its password. */
const PASSWORD_PLACES = [/^[a-z+]+:\/\/[^:/@]*:([^@]*)@/i, /[?&]password=([^&#]*)/i]

/** The password of a connection string, as it is written there and as it is meant. */
export const passwordsOf = (url: string | undefined): string[] =>
  PASSWORD_PLACES.map((place) => place.exec(url ?? '')?.[1])
    .filter((written) => written !== undefined && written !== '')
    .flatMap((written) => [written as string, decoded(written as string)])

const decoded = (written: string): string => {
  try {
    return decodeURIComponent(written)
  } catch {
    return written
  }
}
