import { byId, h } from './dom.js'
import { methodBadge } from './operation.js'

/** @import { Api, Operation } from '../../api-docs/page-model.ts' */

/** The filter box sticks to the top of the contents and covers what lies there. */
const BELOW_FILTER = 60

/**
 * The table of contents: the page's own sections around the operations of each tag.
 *
 * @param {Api} api
 */
export const renderNavigation = ({ tags, securitySchemes, problems, schemas }) => {
  const sections = [
    ['start-here', 'Start here'],
    securitySchemes.length > 0 && ['authentication', 'Authentication'],
  ]
  const appendix = [
    problems.length > 0 && ['problems', 'Problems'],
    schemas.length > 0 && ['schemas', 'Schemas'],
  ]
  byId('contents').replaceChildren(
    sectionLinks(sections),
    ...tags.map(({ id, name, operations }) =>
      h(
        'div',
        { class: 'group' },
        h('a', { class: 'group-name', href: `#${id}` }, name),
        h('ul', {}, operations.map(operationLink)),
      ),
    ),
    sectionLinks(appendix),
  )
}

/** @param {(string[] | false)[]} sections */
const sectionLinks = (sections) =>
  h(
    'ul',
    { class: 'sections' },
    sections
      .filter((section) => section !== false)
      .map(([id, name]) => h('li', {}, h('a', { href: `#${id}` }, name ?? ''))),
  )

/** @param {Operation} operation */
const operationLink = ({ id, method, path, summary, deprecated }) =>
  h(
    'li',
    { 'data-operation': id },
    h(
      'a',
      { href: `#${id}`, title: summary, class: deprecated ? 'deprecated' : undefined },
      methodBadge(method),
      h('span', { class: 'path' }, path),
    ),
  )

/** On a phone the contents fold away behind a button. */
export const setUpMenu = () => {
  const side = /** @type {HTMLElement} */ (document.querySelector('.side'))
  const button = /** @type {HTMLElement} */ (side.querySelector('.menu'))
  const setOpen = (/** @type {boolean} */ open) => {
    side.classList.toggle('open', open)
    button.setAttribute('aria-expanded', String(open))
  }
  button.addEventListener('click', () => setOpen(!side.classList.contains('open')))
  byId('contents').addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('a')) setOpen(false)
  })
  side.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !side.classList.contains('open')) return
    setOpen(false)
    button.focus()
  })
  return { open: () => setOpen(true), close: () => setOpen(false) }
}

/** Marks the place in the contents that the reader has scrolled to. */
export const followReading = () => {
  const inView = new Set()
  const places = [...document.querySelectorAll('[data-place]')]
  // Only a band below the top counts: the section that fills it is the one being read.
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) inView.add(target)
        else inView.delete(target)
      }
      const current = places.find((place) => inView.has(place))
      if (current) markCurrent(current.id)
    },
    { rootMargin: '-15% 0px -75% 0px' },
  )
  for (const place of places) observer.observe(place)
  if (places[0]) markCurrent(places[0].id)
}

/** @param {string} id */
const markCurrent = (id) => {
  const contents = byId('contents')
  contents.querySelector('[aria-current]')?.removeAttribute('aria-current')
  const link = [...contents.querySelectorAll('a')].find(({ hash }) => hash === `#${id}`)
  if (!link) return
  link.setAttribute('aria-current', 'location')
  const box = byId('navigation')
  const { top, bottom } = link.getBoundingClientRect()
  const frame = box.getBoundingClientRect()
  // Not scrollIntoView: it would also scroll the page that the reader is scrolling.
  box.scrollTop += Math.min(0, top - frame.top - BELOW_FILTER) + Math.max(0, bottom - frame.bottom)
}
