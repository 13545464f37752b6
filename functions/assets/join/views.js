/**
 * The element of join.html with this id.
 *
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export const part = (id, kind) => {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`join.html has no ${kind.name} #${id}`)
  return element
}

/**
 * @param {string} id
 * @param {string} text
 */
export const write = (id, text) => {
  part(id, HTMLElement).textContent = text
}

/**
 * Shows one section of the page and hides the others.
 *
 * @param {'ask' | 'joined' | 'closed' | 'incomplete'} id
 */
export const show = (id) => {
  for (const section of document.querySelectorAll('main > section')) {
    section.toggleAttribute('hidden', section.id !== id)
  }
  const heading = part(id, HTMLElement).querySelector('h1')
  document.title = `${heading?.textContent} · SmartQueue`
  // What had the focus may be hidden now; from the heading on, the keyboard and a screen reader go on below.
  heading?.focus()
}
