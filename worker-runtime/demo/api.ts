import { describeError } from '../describe-error.ts'

/** The API of SmartQueue, as a customer's program sees it. */
export type Api = {
  get<Answer>(path: string): Promise<Answer>
  post<Answer>(path: string, body?: object): Promise<Answer>
  patch<Answer>(path: string, body?: object): Promise<Answer>
  delete(path: string): Promise<void>
}

export type Page<Item> = { items: Item[]; next_cursor: string | null }

/** The API has answered that it will not. */
export class Refused extends Error {
  readonly status: number
  readonly retryAfterSeconds: number | undefined

  constructor(what: string, response: Response, text: string) {
    super(`${what} answered ${response.status}: ${detailOf(text)}`)
    this.status = response.status
    const retryAfter = response.headers.get('retry-after')
    this.retryAfterSeconds = retryAfter === null ? undefined : Number(retryAfter)
  }
}

/** No answer at all. */
export class Unreachable extends Error {}

/** A request that hangs must not hang the demo. */
const TIMEOUT_MS = 15_000

export const createApi = (baseUrl: string, token?: string): Api => {
  const send = async (method: string, path: string, body?: object): Promise<string> => {
    const { response, text } = await reach(baseUrl + path, {
      method,
      headers: {
        ...(body && { 'content-type': 'application/json' }),
        ...(token && { authorization: `Bearer ${token}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Refused(`${method} ${path.replace(/\?.*/, '')}`, response, text)
    return text
  }
  const sendForJson =
    (method: string) =>
    async <Answer>(path: string, body?: object): Promise<Answer> =>
      JSON.parse(await send(method, path, body))
  return {
    get: sendForJson('GET'),
    post: sendForJson('POST'),
    patch: sendForJson('PATCH'),
    delete: async (path) => void (await send('DELETE', path)),
  }
}

/** Sends it, and reads the answer. The time is kept here: under load a `fetch` was seen that never settled, whatever its signal said. */
export const reach = async (url: string, init: RequestInit = {}): Promise<Exchange> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const controller = new AbortController()
  const timer = setTimeout(() => {
    reject(new Unreachable(`no answer within ${TIMEOUT_MS / 1000} s`))
    controller.abort()
  }, TIMEOUT_MS)
  try {
    return await Promise.race([exchange(url, { ...init, signal: controller.signal }), late])
  } finally {
    clearTimeout(timer)
  }
}

type Exchange = { response: Response; text: string }

const exchange = async (url: string, init: RequestInit): Promise<Exchange> => {
  try {
    const response = await fetch(url, init)
    return { response, text: await response.text() }
  } catch (error) {
    // `fetch failed` says nothing; its cause does.
    throw new Unreachable(describeError(error instanceof Error && error.cause ? error.cause : error))
  }
}

const detailOf = (text: string): string => {
  try {
    const { title, detail } = JSON.parse(text)
    return detail ?? title ?? text
  } catch {
    return text.slice(0, 200)
  }
}
