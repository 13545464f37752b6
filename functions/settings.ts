/** What settings of the functions may say. The dashboard, the pods and the commands know them too. */

/** Who may create an account: anyone, anyone with an invitation link, or only the operator. */
export const REGISTRATION_MODES = ['open', 'invite', 'closed'] as const
export type RegistrationMode = (typeof REGISTRATION_MODES)[number]
export const REGISTRATION_RULE = 'must be open, invite or closed'

/** In characters. Enforced by the functions, the dashboard and the admin command. */
export const SHORTEST_PASSWORD = 8

export const DEFAULT_ORGS_PER_ACCOUNT = 5
export const MAX_ORGS_PER_ACCOUNT = 10_000

/** Means that no header is trusted. */
export const NO_HEADER = 'none'
export const HEADER_NAME = /^[A-Za-z0-9-]+$/
export const HEADER_RULE = `must be the name of one header, such as cf-connecting-ip, or ${NO_HEADER}`

/** Exactly what a browser sends as `Origin`: no path, no trailing slash, no wildcard. */
const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

/** A comma-separated list of origins. Undefined: one of them is none. */
export const parseOrigins = (text: string): string[] | undefined => {
  const origins = text.split(',').flatMap((origin) => origin.trim() || [])
  return origins.every(isOrigin) ? origins : undefined
}

export const ORIGINS_RULE = 'must be a list of origins, like https://app.example.com'
