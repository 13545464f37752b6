import { post, Refusal } from './api.js'
import { choose, emptyForm, onSubmit } from './form.js'
import { takeInvitation } from './link.js'
import { part, show, write } from './views.js'
import { explain } from './words.js'

/** @import { Entry } from './form.js' */
/** @import { Invitation } from './link.js' */
/** @import { Explanation } from './words.js' */
/** @typedef {{ org_id: string, org_name: string, role: string }} Joined */

/** The name of the account that this page has created, once it has. @type {string | undefined} */
let created

/**
 * @param {Invitation} invitation
 * @param {Entry} entry
 * @returns {Promise<Explanation | undefined>} what stands in the way, if trying again can help
 */
const join = async (invitation, entry) => {
  try {
    const accessToken = await authenticate(entry)
    const joined = await accept(invitation, accessToken).catch(leave)
    showJoined(joined, await activate(joined, accessToken))
    return undefined
  } catch (error) {
    if (error instanceof Refusal && error.slug === 'not-found') {
      showClosed()
      return undefined
    }
    if (!(error instanceof Refusal)) console.error(error)
    const isCreated = entry.mode === 'register' && entry.username === created
    return isCreated ? afterCreation(explain(error), entry.username) : explain(error)
  }
}

/**
 * Signs the browser in. The access token lives as long as this call, and nowhere else.
 *
 * @param {Entry} entry
 * @returns {Promise<string>}
 */
const authenticate = async ({ mode, username, password }) => {
  const path = mode === 'register' ? '/auth/register' : '/auth/login'
  /** @type {{ access_token: string }} */
  const session = await post(path, { username, password })
  if (mode === 'register') created = username
  return session.access_token
}

/**
 * @param {Invitation} invitation
 * @param {string} accessToken
 * @returns {Promise<Joined>}
 */
const accept = ({ id, token }, accessToken) => post(`/orgs/invitations/${id}/accept`, { token }, accessToken)

/**
 * Whoever could not join did not ask to be signed in either. If this fails, too, they stay so: there is nobody to tell.
 *
 * @param {unknown} error
 * @returns {Promise<never>}
 */
const leave = async (error) => {
  await post('/auth/logout', {}).catch(() => undefined)
  throw error
}

/**
 * From here on the sign-in acts in the organisation. Joined is joined: if this fails, the dashboard can do it later.
 *
 * @param {Joined} joined
 * @param {string} accessToken
 * @returns {Promise<boolean>}
 */
const activate = ({ org_id }, accessToken) =>
  post(`/orgs/${org_id}/switch`, {}, accessToken).then(
    () => true,
    () => false,
  )

/**
 * @param {Joined} joined
 * @param {boolean} isActive
 */
const showJoined = ({ org_name, role }, isActive) => {
  emptyForm()
  write('org-name', org_name)
  write('role', role)
  part('active', HTMLElement).hidden = !isActive
  part('not-active', HTMLElement).hidden = isActive
  show('joined')
}

const showClosed = () => {
  emptyForm()
  show('closed')
  write(
    'closed-reason',
    'It was used already, has expired or was revoked. Ask whoever invited you for a new link.',
  )
  part('account-stays', HTMLElement).hidden = created === undefined
  write('account-name', created ?? '')
}

/**
 * An account is created once: trying again means signing in.
 *
 * @param {Explanation} problem
 * @param {string} username
 * @returns {Explanation}
 */
const afterCreation = (problem, username) => {
  choose('login')
  return { ...problem, lines: [...problem.lines, `Your account ${username} exists: sign in to try again.`] }
}

const start = () => {
  const invitation = takeInvitation()
  if (!invitation) {
    show('incomplete')
    write(
      'incomplete-reason',
      'Open the whole link that you were given. If you have reloaded this page, open the link once more. ' +
        'If that does not help, ask whoever invited you for a new one.',
    )
    return
  }
  onSubmit((entry) => join(invitation, entry))
  show('ask')
}

// A second link that is pasted into this tab changes the hash only, and that alone loads nothing.
addEventListener('hashchange', () => location.reload())
start()
