import { byId, h } from './dom.js'

const COPIED_MS = 2000

/**
 * Code with a title and a copy button. Long lines scroll inside; the focus lets the keyboard scroll them.
 *
 * @param {{ title: string, about: string, text: string, language: 'json' | 'shell' }} block `about` tells blocks
 *   of one title apart for those who do not see where they stand
 */
export const codeBlock = ({ title, about, text, language }) => {
  const label = `${title}: ${about}`
  const code = h('code', {}, highlighted(text, language))
  const button = h('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${label}` }, 'Copy')
  button.addEventListener('click', () => copy(button, code))
  return h(
    'figure',
    { class: 'code' },
    h('figcaption', {}, h('span', {}, title), button),
    h('pre', { tabindex: 0, role: 'group', 'aria-label': label }, code),
  )
}

/**
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} code
 */
const copy = async (button, code) => {
  const done = (await copyText(code)) ? 'Copied' : 'Press Ctrl+C'
  button.textContent = done
  byId('announcer').textContent = done
  setTimeout(() => {
    button.textContent = 'Copy'
    byId('announcer').textContent = ''
  }, COPIED_MS)
}

/**
 * Browsers hide the clipboard from pages on plain http, where a worker on a home network is reached; there
 * the text is selected, and copied the old way if that is allowed.
 *
 * @param {HTMLElement} code
 * @returns {Promise<boolean>}
 */
const copyText = async (code) => {
  try {
    await navigator.clipboard.writeText(code.textContent ?? '')
    return true
  } catch {
    getSelection()?.selectAllChildren(code)
    return document.execCommand('copy')
  }
}

const TOKENS = {
  json: /(?<key>"(?:\\.|[^"\\])*")(?=\s*:)|(?<string>"(?:\\.|[^"\\])*")|(?<literal>\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*)/g,
  shell: /(?<literal>\$[A-Z_]+)|(?<key>\bcurl\b)/g,
}

/**
 * @param {string} text
 * @param {'json' | 'shell'} language
 */
const highlighted = (text, language) => {
  const nodes = []
  let end = 0
  for (const match of text.matchAll(TOKENS[language])) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined) ?? []
    nodes.push(text.slice(end, match.index), h('span', { class: `token-${kind}` }, match[0]))
    end = match.index + match[0].length
  }
  nodes.push(text.slice(end))
  return nodes
}
