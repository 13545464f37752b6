import { byId } from './dom.js'

/** @import { Operation } from '../../api-docs/page-model.ts' */

/**
 * Narrows the operations in the contents and on the page at once. `/` focuses the box, Enter goes to the first
 * match, Escape clears. Groups that run empty hide themselves in the style sheet.
 *
 * @param {Operation[]} operations
 * @param {{ open(): void, close(): void }} menu
 */
export const setUpFilter = (operations, menu) => {
  const input = /** @type {HTMLInputElement} */ (byId('filter'))
  const entries = operations.map((operation) => ({
    id: operation.id,
    words: [operation.method, operation.path, operation.tag, operation.summary, operation.description]
      .join(' ')
      .toLowerCase(),
    elements: [byId(operation.id), document.querySelector(`[data-operation="${operation.id}"]`)],
  }))

  /** @param {string} text */
  const matching = (text) => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    return entries.filter(({ words }) => wanted.every((word) => words.includes(word)))
  }

  const apply = () => {
    const text = input.value.trim()
    const matches = new Set(matching(text))
    for (const entry of entries) {
      for (const element of entry.elements) element?.toggleAttribute('hidden', !matches.has(entry))
    }
    document.body.classList.toggle('filtering', text !== '')
    byId('matches').textContent = text && `${matches.size} of ${entries.length} operations`
  }

  const clear = () => {
    input.value = ''
    apply()
  }

  input.addEventListener('input', () => {
    apply()
    scrollTo(0, 0)
  })
  input.addEventListener('keydown', (event) => {
    const [first] = matching(input.value)
    if (event.key === 'Enter' && first) {
      location.hash = first.id
      byId(first.id).scrollIntoView()
      menu.close()
    }
    if (event.key === 'Escape' && input.value) {
      clear()
      event.stopPropagation()
    }
  })
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    event.preventDefault()
    menu.open()
    input.focus()
    input.select()
  })
  apply()
  return { clear }
}

/** @param {EventTarget | null} target */
const isTyping = (target) => target instanceof HTMLElement && target.matches('input, textarea, select')
