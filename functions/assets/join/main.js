import { get, post, Refusal } from './api.js'
import { emptyForm, onSubmit, signInOnly } from './form.js'
import { takeInvitation } from './link.js'
import { part, show, write } from './views.js'
import { explain } from './words.js'

/** @import { Entry } from './form.js' */
/** @import { Invitation } from './link.js' */
/** @import { Explanation } from './words.js' */
/** @typedef {{ org_id: string, org_name: string, role: string }} Joined */
/** @typedef {{ user: { org_id: string, role: string }, access_token: string }} Session */

/**
 * @param {Invitation} invitation
 * @param {Entry} entry
 * @returns {Promise<Explanation | undefined>} what stands in the way, if trying again can help
 */
const join = async (invitation, entry) => {
  try {
    await (entry.mode === 'register' ? joinAsNew(invitation, entry) : joinAsKnown(invitation, entry))
    return undefined
  } catch (error) {
    if (error instanceof Refusal && error.slug === 'not-found') {
      showClosed()
      return undefined
    }
    if (!(error instanceof Refusal)) console.error(error)
    return explain(error)
  }
}

/**
 * Creates the account and joins the organisation in one step: both happen or neither does.
 *
 * @param {Invitation} invitation
 * @param {Entry} entry
 */
const joinAsNew = async ({ token }, { username, password }) => {
  /** @type {Session} */
  const { user, access_token } = await post('/auth/register', { username, password, invitation: token })
  /** @type {{ name: string }} */
  const org = await get('/orgs/me', access_token).catch(() => ({ name: 'the organisation' }))
  showJoined({ org_id: user.org_id, org_name: org.name, role: user.role }, true)
}

/**
 * Signs the browser in. The access token lives as long as this call, and nowhere else.
 *
 * @param {Invitation} invitation
 * @param {Entry} entry
 */
const joinAsKnown = async (invitation, { username, password }) => {
  /** @type {Session} */
  const { access_token } = await post('/auth/login', { username, password })
  const joined = await accept(invitation, access_token).catch(leave)
  showJoined(joined, await activate(joined, access_token))
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
}

const start = async () => {
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
  /** @type {{ registration?: string }} */
  const policy = await get('/auth/registration').catch(() => ({}))
  if (policy.registration === 'closed') signInOnly()
  show('ask')
}

// A second link that is pasted into this tab changes the hash only, and that alone loads nothing.
addEventListener('hashchange', () => location.reload())
start()
