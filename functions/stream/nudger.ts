import type { Hold } from '../http/background.ts'

/** Tells the object of an organisation that something was committed there. Nobody waits for it, and it may fail. */
export type Nudger = { nudge(orgId: string, hold: Hold): void }

/** Where nobody follows, the object is left alone for a while: whoever comes begins to read by themselves. */
const DESERTED_MS = 3_000
/** On workerd a request may end before its work does. */
const LOST_MS = 2_000
const MOST_REMEMBERED = 10_000

type Remembered = { sendingSince: number | null; again: boolean; desertedUntil: number }

/** One nudge is on its way to an organisation at a time. What is committed meanwhile is in the next. */
export const createNudger = (
  send: (orgId: string) => Promise<number>,
  onError: (error: unknown) => void,
): Nudger => {
  const orgs = new Map<string, Remembered>()

  const remember = (orgId: string): Remembered => {
    const known = orgs.get(orgId)
    if (known) return known
    if (orgs.size === MOST_REMEMBERED) orgs.clear()
    const fresh = { sendingSince: null, again: false, desertedUntil: 0 }
    orgs.set(orgId, fresh)
    return fresh
  }

  const sendAll = async (orgId: string, org: Remembered): Promise<void> => {
    do {
      org.again = false
      org.sendingSince = Date.now()
      const following = await send(orgId)
      if (following === 0) org.desertedUntil = Date.now() + DESERTED_MS
    } while (org.again && org.desertedUntil <= Date.now())
  }

  return {
    nudge: (orgId, hold) => {
      const org = remember(orgId)
      const now = Date.now()
      if (org.desertedUntil > now) return
      org.again = true
      if (org.sendingSince !== null && now - org.sendingSince < LOST_MS) return
      hold(
        sendAll(orgId, org)
          .catch(onError)
          .finally(() => {
            org.sendingSince = null
          }),
      )
    },
  }
}
