import { Refusal } from './api.js'

/** @import { Reason } from './api.js' */
/** @typedef {'username' | 'password'} Field */
/** @typedef {{ title: string, lines: string[], fields: Field[] }} Explanation `fields`: which to look at */

/** @type {Record<string, Field>} */
const FIELDS = { '#/username': 'username', '#/password': 'password' }

/**
 * What went wrong, for somebody in front of a form. Mostly that is what the API says; where it speaks to
 * programs, of paths and pointers, the page has words of its own.
 *
 * @param {unknown} error
 * @returns {Explanation}
 */
export const explain = (error) => {
  if (!(error instanceof Refusal))
    return { title: 'This page has failed', lines: [String(error)], fields: [] }
  const { slug, title, detail, errors } = error
  const fields = errors.flatMap(({ pointer }) => FIELDS[pointer] ?? [])
  if (slug === 'invalid-request' && errors.length > 0) {
    return { title: 'This does not fit', lines: errors.map(inWords), fields }
  }
  if (slug === 'wrong-credentials') {
    return { title, lines: ['Check both, or choose “Create an account”.'], fields: ['password'] }
  }
  if (slug === 'rate-limited' && error.retryAfter) {
    return { title, lines: [`Try again in ${seconds(error.retryAfter)}.`], fields }
  }
  if (slug === 'already-member') {
    return { title: detail, lines: ['The link stays good for somebody else.'], fields }
  }
  return { title, lines: [detail], fields }
}

/** `#/username`, `must start with…` → `Username must start with…` @param {Reason} reason */
const inWords = ({ pointer, detail }) => {
  const name = FIELDS[pointer] ?? pointer
  return `${name.charAt(0).toUpperCase()}${name.slice(1)} ${detail}`
}

/** @param {number} count */
const seconds = (count) => (count === 1 ? '1 second' : `${count} seconds`)
