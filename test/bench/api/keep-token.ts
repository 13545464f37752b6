const KEEP_MS = 300_000

/** Tokens hold for ten minutes, and logins are limited: a new one every five. */
export const keepToken = (issue: () => Promise<string>): (() => Promise<string>) => {
  let token: { value: Promise<string>; issuedAt: number } | undefined
  return () => {
    if (!token || performance.now() - token.issuedAt > KEEP_MS) {
      const value = issue()
      token = { value, issuedAt: performance.now() }
      value.catch(() => {
        token = undefined
      })
    }
    return token.value
  }
}
