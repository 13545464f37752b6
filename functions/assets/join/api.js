/**
 * @typedef {{ pointer: string, detail: string }} Reason
 * @typedef {{ type?: string, title: string, detail: string, errors?: Reason[] }} Problem
 */

const TIMEOUT_MS = 30_000

/** The API has said no, or nothing at all. */
export class Refusal extends Error {
  /**
   * @param {Problem} problem
   * @param {number} [retryAfter] seconds
   */
  constructor({ type = '', title, detail, errors = [] }, retryAfter) {
    super(detail)
    /** The kind of problem, such as `not-found`; empty if it is none that the API names. */
    this.slug = type.split('#problem-')[1] ?? ''
    this.title = title
    this.detail = detail
    this.errors = errors
    this.retryAfter = retryAfter
  }
}

/**
 * @template Answer
 * @param {string} path
 * @param {object} body
 * @param {string} [accessToken]
 * @returns {Promise<Answer>} undefined, if the answer has no body
 */
export const post = (path, body, accessToken) => answerOf(path, body, accessToken)

/**
 * @template Answer
 * @param {string} path
 * @param {string} [accessToken]
 * @returns {Promise<Answer>}
 */
export const get = (path, accessToken) => answerOf(path, undefined, accessToken)

/**
 * @param {string} path
 * @param {object | undefined} body
 * @param {string | undefined} accessToken
 */
const answerOf = async (path, body, accessToken) => {
  const response = await send(path, body, accessToken)
  const answer = await response.json().catch(() => undefined)
  if (response.ok && (answer || response.status === 204)) return answer
  if (!answer?.title) {
    throw new Refusal({
      title: 'The server has trouble',
      detail: `It answered with status ${response.status}. Try again in a moment.`,
    })
  }
  throw new Refusal(answer, Number(response.headers.get('retry-after')) || undefined)
}

/**
 * @param {string} path
 * @param {object | undefined} body
 * @param {string | undefined} accessToken
 */
const send = async (path, body, accessToken) => {
  try {
    return await fetch(path, {
      method: body ? 'POST' : 'GET',
      headers: {
        ...(body && { 'content-type': 'application/json' }),
        // The refresh token goes into a cookie that no script can read, this one included.
        'smartqueue-session': 'cookie',
        ...(accessToken && { authorization: `Bearer ${accessToken}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
      credentials: 'same-origin',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch {
    throw new Refusal({
      title: 'The server does not answer',
      detail: 'Check your connection and try again.',
    })
  }
}
