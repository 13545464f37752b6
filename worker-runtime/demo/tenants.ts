import { setTimeout as delay } from 'node:timers/promises'
import { UsageError } from '../command.ts'
import { type Api, createApi, type Page, Refused } from './api.ts'
import { inSeconds } from './job-requests.ts'
import type { TenantName } from './kinds.ts'

/** For everybody to read: only a system on this machine is ever given these accounts. */
export const PASSWORD = 'watch-it-learn'

export type Account = { username: string; orgId: string; api: Api }

/** What the demo does during the run it does with an API key, as programs do. */
export type Tenant = { name: TenantName; orgId: string; owner: Api; api: Api }

export const openTenant = async (baseUrl: string, name: TenantName, say: Say): Promise<Tenant> => {
  const { orgId, api: owner } = await signIn(baseUrl, name, say)
  return { name, orgId, owner, api: createApi(baseUrl, await replaceKey(owner)) }
}

export type Say = (text: string) => void

type Session = { access_token: string; user: { org_id: string } }

/** As whoever ran the demo before, or as somebody new. */
export const signIn = async (baseUrl: string, username: string, say: Say): Promise<Account> => {
  const credentials = { username, password: PASSWORD }
  const enter = (how: 'login' | 'register'): Promise<Session> =>
    whenAdmitted(() => createApi(baseUrl).post<Session>(`/auth/${how}`, credentials), say)
  const session = await enter('login').catch((error: unknown) => {
    if (hasStatus(error, 401)) return enter('register')
    throw error
  })
  return { username, orgId: session.user.org_id, api: createApi(baseUrl, session.access_token) }
}

/** Only so many may sign in, and register, in a minute. */
const whenAdmitted = async (attempt: () => Promise<Session>, say: Say): Promise<Session> => {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (hasStatus(error, 409)) throw new UsageError(TAKEN)
      if (!(error instanceof Refused) || error.status !== 429) throw error
      const seconds = error.retryAfterSeconds ?? 10
      say(`Signing in is limited; going on in ${seconds} s…`)
      await delay(seconds * 1000)
    }
  }
}

const TAKEN =
  'An account of the demo exists with another password. Set it back with `npm run admin -- password`, or run `npm run dev` with another SMARTQUEUE_HOME.'

export const hasStatus = (error: unknown, status: number): boolean =>
  error instanceof Refused && error.status === status

const KEY_NAME = 'demo'
const SCOPES = ['jobs:submit', 'jobs:read', 'jobs:manage', 'schedules:manage']
const KEY_SECONDS = 86_400

type Key = { id: string; name: string; revoked_at: string | null }

/** A key is shown only once, so each run makes one, and revokes that of the run before. */
const replaceKey = async (owner: Api): Promise<string> => {
  const { items } = await owner.get<Page<Key>>('/auth/keys?limit=200')
  const old = items.filter(({ name, revoked_at }) => name === KEY_NAME && revoked_at === null)
  await Promise.all(old.map(({ id }) => owner.delete(`/auth/keys/${id}`)))
  const body = { name: KEY_NAME, scopes: SCOPES, expires_at: inSeconds(Date.now(), KEY_SECONDS) }
  return (await owner.post<{ key: string }>('/auth/keys', body)).key
}
