/**
 * Who is signed in. The access token is in memory only; what renews it is a cookie that no script can read.
 * A refresh token is good once, and all tabs share one: they take turns.
 */
import { computed, signal } from '@preact/signals'
import { isAtLeast, type Role } from '../../../db/rules/roles.ts'
import { PERMISSIONS, type Permission } from '../../auth/permissions.ts'
import { Refusal } from '../api/refusal.ts'
import { send } from '../api/send.ts'

export type User = { id: string; username: string; role: Role; org_id: string }
type Answer = { user: User; access_token: string; expires_in: number }
type Session = { user: User; accessToken: string; expiresAtMs: number }

const AS_COOKIE = { 'smartqueue-session': 'cookie' }
/** A token is renewed this long before it ends. */
const MARGIN_MS = 30_000

/** Undefined: not known yet. Null: nobody. */
const session = signal<Session | null | undefined>(undefined)

export const user = computed(() => (session.value === undefined ? undefined : (session.value?.user ?? null)))

/** Whether the role of whoever is signed in has the permission. */
export const may = (permission: Permission): boolean =>
  user.value ? isAtLeast(user.value.role, PERMISSIONS[permission].role) : false

const tabs = new BroadcastChannel('smartqueue-session')

const adopt = (answer: Answer): void => {
  const { user, access_token: accessToken, expires_in } = answer
  session.value = { user, accessToken, expiresAtMs: Date.now() + expires_in * 1000 }
}

const authenticate = async (
  path: string,
  credentials: { username: string; password: string },
): Promise<void> => {
  const answer = await send<Answer>(path, { method: 'POST', json: credentials, headers: AS_COOKIE })
  adopt(await inFormerOrg(answer))
  tabs.postMessage('changed')
}

/** A sign-in begins in the oldest organisation. Whoever worked in another one here before goes on there. */
const inFormerOrg = async (answer: Answer): Promise<Answer> => {
  const former = localStorage.getItem(formerOrgKey(answer.user))
  if (!former || former === answer.user.org_id) return answer
  // They may have left it since.
  return switchTo(former, answer.access_token).catch(() => answer)
}

const formerOrgKey = ({ id }: User): string => `smartqueue-org-${id}`

const switchTo = (orgId: string, token: string): Promise<Answer> =>
  send(`/orgs/${orgId}/switch`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })

export const signIn = (credentials: { username: string; password: string }): Promise<void> =>
  authenticate('/auth/login', credentials)

export const signUp = (credentials: { username: string; password: string }): Promise<void> =>
  authenticate('/auth/register', credentials)

export const signOut = async (): Promise<void> => {
  await inTurn(() => send('/auth/logout', { method: 'POST', json: {}, headers: AS_COOKIE }))
  session.value = null
  tabs.postMessage('changed')
}

export const switchOrg = async (id: string): Promise<void> => {
  const answer = await switchTo(id, await accessToken())
  localStorage.setItem(formerOrgKey(answer.user), id)
  adopt(answer)
  tabs.postMessage('changed')
}

/** One that is good for a while. Whoever has no sign-in any more gets a refusal, and the page asks for one. */
export const accessToken = async (): Promise<string> => {
  const current = session.peek()
  if (current && current.expiresAtMs - Date.now() > MARGIN_MS) return current.accessToken
  return renew()
}

let renewing: Promise<string> | undefined

export const renew = (): Promise<string> => {
  renewing ??= inTurn(refresh).finally(() => {
    renewing = undefined
  })
  return renewing
}

const refresh = async (): Promise<string> => {
  try {
    const renewal = { method: 'POST', json: {}, headers: AS_COOKIE, keepalive: true } as const
    const answer = await send<Answer>('/auth/refresh', renewal)
    // An admin who only looks into an organisation does so for one token, and then looks on.
    adopt(answer.user.role === 'admin' ? await inFormerOrg(answer) : answer)
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) session.value = null
    throw error
  }
  return session.peek()?.accessToken ?? ''
}

const inTurn = <Value>(work: () => Promise<Value>): Promise<Value> =>
  navigator.locks.request('smartqueue-session', work) as Promise<Value>

/** Why it is not known yet who is signed in. */
export const trouble = signal<Refusal | undefined>(undefined)
const TRY_AGAIN_MS = 3_000

/** Finds out who is signed in, if anybody, when the page opens and when another tab has changed it. */
export const resume = async (): Promise<void> => {
  await renew().catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    if (session.peek() !== undefined) return
    // Nobody has to sign in again only because the server had no answer.
    trouble.value = error
    setTimeout(resume, TRY_AGAIN_MS)
  })
}

tabs.onmessage = () => void resume()
