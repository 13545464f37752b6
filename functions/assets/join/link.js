/** @typedef {{ id: string, token: string }} Invitation */

/** `#<invitation id>.<token>`, whole: a link that was cut off when it was copied is not taken for a used one. */
const INVITATION = /^#([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(sqi_[0-9a-f]{64})$/

/**
 * The invitation in the address, which the address then has no more: whoever has the token can join, so it
 * stays out of the history, of screenshots and of bookmarks.
 *
 * @returns {Invitation | undefined}
 */
export const takeInvitation = () => {
  const [, id, token] = location.hash.match(INVITATION) ?? []
  history.replaceState(null, '', location.pathname + location.search)
  return id && token ? { id, token } : undefined
}
