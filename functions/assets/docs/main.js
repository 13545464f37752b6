import { readApi } from './api-model.js'
import { byId, h } from './dom.js'
import { setUpFilter } from './filter.js'
import { followReading, renderNavigation, setUpMenu } from './navigation.js'
import { operationSection } from './operation.js'
import { prose } from './prose.js'
import { authentication, intro, problems, schemas } from './reference.js'
import { startHere } from './start-here.js'

/** @import { Api, OpenApiDocument, Tag } from '../../api-docs/page-model.ts' */

const TIMEOUT_MS = 15_000
const menu = setUpMenu()

const load = async () => {
  byId('content').setAttribute('aria-busy', 'true')
  try {
    show(readApi(await fetchDocument()))
  } catch (error) {
    showFailure(error instanceof Error ? error.message : String(error))
    console.error(error)
  } finally {
    byId('content').setAttribute('aria-busy', 'false')
  }
}

/** @returns {Promise<OpenApiDocument>} */
const fetchDocument = async () => {
  const response = await fetch('/openapi.json', { signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!response.ok) throw new Error(`/openapi.json answered with status ${response.status}.`)
  return response.json()
}

/** @param {Api} api */
const show = (api) => {
  document.title = `${api.title} API`
  byId('brand').textContent = api.title
  byId('version').textContent = api.version
  byId('content').replaceChildren(
    intro(api),
    startHere(api),
    ...(api.securitySchemes.length > 0 ? [authentication(api)] : []),
    ...api.tags.map((tag) => tagSection(tag, api)),
    ...(api.problems.length > 0 ? [problems(api)] : []),
    ...(api.schemas.length > 0 ? [schemas(api)] : []),
  )
  renderNavigation(api)
  followReading()
  const filter = setUpFilter(api.operations, menu)
  addEventListener('hashchange', () => reveal(filter))
  // The fragment was looked up before its target existed: going there once more scrolls and sets :target.
  if (location.hash) location.replace(location.hash)
  reveal(filter)
}

/**
 * @param {Tag} tag
 * @param {Api} api
 */
const tagSection = ({ id, name, description, operations }, { resolve }) =>
  h(
    'section',
    { id, class: 'tag' },
    h('div', { class: 'tag-head' }, h('h2', {}, name), prose(description)),
    operations.map((operation) => operationSection(operation, resolve)),
  )

/** What the fragment names may be folded or filtered away. @param {{ clear(): void }} filter */
const reveal = (filter) => {
  const target = document.getElementById(fragment())
  if (!target) return
  if (target instanceof HTMLDetailsElement && !target.open) {
    // The content comes with this event; before it the page may be too short to bring the top up.
    target.addEventListener('toggle', () => target.scrollIntoView(), { once: true })
    target.open = true
  }
  if (target.checkVisibility()) return
  filter.clear()
  target.scrollIntoView()
}

const fragment = () => {
  const text = location.hash.slice(1)
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** @param {string} reason */
const showFailure = (reason) => {
  const retry = h('button', { type: 'button', class: 'retry' }, 'Try again')
  retry.addEventListener('click', load)
  byId('content').replaceChildren(
    h(
      'section',
      { class: 'failure', role: 'alert' },
      h('h1', {}, 'The API document could not be loaded'),
      h(
        'p',
        {},
        'This page is drawn from ',
        h('a', { href: '/openapi.json' }, '/openapi.json'),
        '. ',
        reason,
      ),
      retry,
    ),
  )
}

load()
