/** Exactly what a browser sends as `Origin`: no path, no trailing slash, no wildcard. */
const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

/** A comma-separated list of origins. Undefined: one of them is none. */
export const parseOrigins = (text: string): string[] | undefined => {
  const origins = text.split(',').flatMap((origin) => origin.trim() || [])
  return origins.every(isOrigin) ? origins : undefined
}

export const ORIGINS_RULE = 'must be a list of origins, like https://app.example.com'
