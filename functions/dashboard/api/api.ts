import { accessToken, renew, user } from '../session/session.ts'
import { Refusal } from './refusal.ts'
import { type Request, send } from './send.ts'

/**
 * A request in the name of whoever is signed in. A token that has just ended is renewed, once. A password that is wrong is a
 * 401 as well, and is not sent again: each counts as an attempt.
 */
export const api = async <Answer>(path: string, request: Request = {}): Promise<Answer> => {
  const attempt = (token: string): Promise<Answer> =>
    send(path, {
      ...request,
      headers: { ...ofOrg(path), ...request.headers, authorization: `Bearer ${token}` },
    })
  try {
    return await attempt(await accessToken())
  } catch (error) {
    if (error instanceof Refusal && error.slug === 'unauthenticated') return attempt(await renew())
    throw error
  }
}

/** An admin would be told the jobs of all organisations; events come from the one that is chosen. */
const ofOrg = (path: string): Record<string, string> => {
  const { role, org_id } = user.peek() ?? {}
  return path === '/jobs' && role === 'admin' && org_id ? { 'smartqueue-org': org_id } : {}
}

export const get = <Answer>(path: string, query?: Request['query'], signal?: AbortSignal): Promise<Answer> =>
  api<Answer>(path, { query: query ?? {}, signal })

export const post = <Answer>(path: string, json: unknown = {}): Promise<Answer> =>
  api<Answer>(path, { method: 'POST', json })

export const patch = <Answer>(path: string, json: unknown = {}): Promise<Answer> =>
  api<Answer>(path, { method: 'PATCH', json })

export const remove = <Answer>(path: string, json?: unknown): Promise<Answer> =>
  api<Answer>(path, { method: 'DELETE', json })
