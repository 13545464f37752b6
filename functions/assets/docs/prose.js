import { h } from './dom.js'

/** @import { Child } from './dom.js' */

/**
 * Descriptions are CommonMark. Of it the page knows paragraphs, lists, `code`, **strong** and links; the rest
 * is shown as it is written.
 *
 * @param {string | undefined} text
 * @returns {Child[]}
 */
export const prose = (text = '') =>
  text
    .trim()
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((block) => {
      const lines = block.split('\n')
      if (!lines.every((line) => LIST_ITEM.test(line))) return h('p', {}, inline(block))
      const items = lines.map((line) => h('li', {}, inline(line.replace(LIST_ITEM, ''))))
      return h('ul', {}, items)
    })

const LIST_ITEM = /^\s*[-*] +/
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g

/**
 * @param {string | undefined} text
 * @returns {Child[]}
 */
export const inline = (text = '') => {
  /** @type {Child[]} */
  const nodes = []
  let end = 0
  for (const match of text.matchAll(INLINE)) {
    nodes.push(text.slice(end, match.index), marked(match))
    end = match.index + match[0].length
  }
  nodes.push(text.slice(end))
  return nodes
}

/** @param {RegExpExecArray} match */
const marked = ([whole, code, strong, label, target]) => {
  if (code) return h('code', {}, code)
  if (strong) return h('strong', {}, strong)
  if (label && target && isWebAddress(target)) return h('a', { href: target }, label)
  return whole
}

/** Keeps `javascript:` and its kin from becoming links. @param {string} target */
const isWebAddress = (target) =>
  URL.canParse(target, location.href) && /^(https?|mailto):$/.test(new URL(target, location.href).protocol)
