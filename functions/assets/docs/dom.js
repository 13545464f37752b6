/** @typedef {Node | string | null | undefined | false} Child */

/**
 * An element with attributes and children. Strings only ever become text nodes: whatever the API document
 * says, it cannot turn into markup.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export const h = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.flat().filter(isShown))
  return element
}

/**
 * The element of docs.html with this id.
 *
 * @param {string} id
 */
export const byId = (id) => {
  const element = document.getElementById(id)
  if (!element) throw new Error(`docs.html has no #${id}`)
  return element
}

/**
 * Phones show a row as a block, and `display: block` costs a table its semantics unless the roles are said.
 *
 * @param {string[]} columns
 * @param {HTMLTableRowElement[]} rows
 */
export const table = (columns, rows) =>
  h(
    'table',
    { role: 'table' },
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row' },
        columns.map((name) => h('th', { scope: 'col', role: 'columnheader' }, name)),
      ),
    ),
    h('tbody', { role: 'rowgroup' }, rows),
  )

/**
 * @param {Record<string, string | number | undefined>} attributes
 * @param {...Child[]} cells
 */
export const row = (attributes, ...cells) =>
  h(
    'tr',
    { role: 'row', ...attributes },
    cells.map((cell) => h('td', { role: 'cell' }, cell)),
  )

/**
 * A `<details>` that builds its content when it first opens: hundreds of closed ones then cost nothing.
 *
 * @param {Record<string, string | undefined>} attributes
 * @param {Child[]} summary
 * @param {() => Child[]} content
 */
export const lazyDetails = (attributes, summary, content) => {
  const details = h('details', attributes, h('summary', {}, summary))
  const fill = () => details.append(h('div', { class: 'unfolded' }, content()))
  details.addEventListener('toggle', fill, { once: true })
  return details
}

/**
 * Lets a path or a name break after its separators rather than inside a word.
 *
 * @param {string} text
 * @returns {Child[]}
 */
export const breakable = (text) => text.split(/(?<=[/_.-])/).flatMap((part) => [part, h('wbr')])

/**
 * Nodes with a separator between them.
 *
 * @param {Child[][]} groups
 * @param {string} separator
 * @returns {Child[]}
 */
export const joined = (groups, separator) =>
  groups.flatMap((group, index) => (index === 0 ? group : [separator, ...group]))

/**
 * @param {Child} child
 * @returns {child is Node | string}
 */
const isShown = (child) => child instanceof Node || (typeof child === 'string' && child !== '')
