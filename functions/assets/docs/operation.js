import { codeBlock } from './code-block.js'
import { curlCommand } from './curl.js'
import { breakable, h, lazyDetails } from './dom.js'
import { exampleOf } from './example.js'
import { fieldsTable, parametersTable } from './fields-table.js'
import { inline, prose } from './prose.js'
import { componentName } from './references.js'
import { typeOf } from './schema-words.js'

/** @import { Answer, Content, Operation, Resolve } from '../../api-docs/page-model.ts' */
/** @import { Child } from './dom.js' */

const TOKEN_WORDS = { needed: 'Needs a token', optional: 'Token optional', none: 'No token' }

/**
 * @param {Operation} operation
 * @param {Resolve} resolve
 */
export const operationSection = (operation, resolve) => {
  const { id, summary, description, deprecated } = operation
  return h(
    'section',
    { id, class: 'operation', 'data-place': true },
    h(
      'div',
      { class: 'about' },
      h('h3', {}, h('a', { class: 'anchor', href: `#${id}` }, summary)),
      addressLine(operation),
      deprecated && h('p', { class: 'warning' }, 'Deprecated: it will go away.'),
      prose(description),
      parameters(operation, resolve),
      requestBody(operation, resolve),
      h('h4', {}, 'Responses'),
      h(
        'div',
        { class: 'answers' },
        operation.answers.map((answer) => answerDetails(answer, resolve)),
      ),
    ),
    h('div', { class: 'samples' }, h('div', {}, samples(operation, resolve))),
  )
}

/** @param {string} method */
export const methodBadge = (method) => h('span', { class: `method method-${method}` }, method.toUpperCase())

/** @param {Operation} operation */
const addressLine = ({ method, path, token, permission }) =>
  h(
    'p',
    { class: 'address' },
    methodBadge(method),
    h('code', { class: 'path' }, breakable(path)),
    token === 'none'
      ? h('span', { class: 'token' }, TOKEN_WORDS.none)
      : h(
          'a',
          { class: 'token needed', href: '#authentication' },
          permission ? `Needs ${permission}` : TOKEN_WORDS[token],
        ),
  )

/**
 * @param {Operation} operation
 * @param {Resolve} resolve
 */
const parameters = ({ parameters: all }, resolve) =>
  all.length > 0 ? [h('h4', {}, 'Parameters'), parametersTable(all, resolve)] : []

/**
 * @param {Operation} operation
 * @param {Resolve} resolve
 */
const requestBody = ({ body }, resolve) => {
  if (!body) return []
  const type = componentName(body.schema) ? typeOf(body.schema) : []
  return [
    h('h4', {}, 'Request body', h('span', { class: 'aside' }, type, h('span', {}, body.mediaType))),
    ...fieldsTable(body.schema, resolve),
  ]
}

/**
 * @param {Operation} operation
 * @param {Resolve} resolve
 */
const samples = (operation, resolve) => {
  const { body, summary } = operation
  const blocks = [
    codeBlock({ title: 'curl', about: summary, language: 'shell', text: curlCommand(operation, resolve) }),
  ]
  if (body && /json/.test(body.mediaType)) {
    const value = body.example ?? exampleOf(body.schema, 'typical', resolve)
    blocks.push(jsonBlock('Example body', summary, value))
  }
  return blocks
}

/**
 * @param {string} title
 * @param {string} about
 * @param {unknown} value
 */
const jsonBlock = (title, about, value) =>
  codeBlock({ title, about, language: 'json', text: JSON.stringify(value, null, 2) })

/**
 * @param {Answer} answer
 * @param {Resolve} resolve
 */
const answerDetails = (answer, resolve) => {
  const { status, description, content } = answer
  const code = h('span', { class: `status status-${status.charAt(0)}` }, status)
  const words = h('span', { class: 'meaning' }, inline(description))
  if (!content) return h('p', { class: 'answer' }, code, words)
  return lazyDetails({ class: 'answer' }, [code, words], () => answerContent(answer, content, resolve))
}

/**
 * @param {Answer} answer
 * @param {Content} content
 * @param {Resolve} resolve
 * @returns {Child[]}
 */
const answerContent = (answer, { mediaType, schema, example }, resolve) => {
  const component = componentName(schema)
  const type = h('p', { class: 'aside' }, component ? typeOf(schema) : [], h('span', {}, mediaType))
  const value = example ?? problemExample(answer, exampleOf(schema, 'all', resolve))
  return [
    type,
    problemLinks(answer),
    ...(component ? [] : fieldsTable(schema, resolve)),
    /json/.test(mediaType) && jsonBlock('Example response', answer.description, value),
  ]
}

/** @param {Answer} answer */
const problemLinks = ({ problems }) => {
  const links = problems.map(({ slug, title }) => h('li', {}, h('a', { href: `#problem-${slug}` }, title)))
  return links.length > 0 && h('ul', { class: 'problem-links' }, links)
}

/**
 * A problem's example says what this response would say.
 *
 * @param {Answer} answer
 * @param {unknown} example
 */
const problemExample = ({ problems: [problem] }, example) => {
  if (!problem) return example
  const { slug, title, status } = problem
  return { .../** @type {object} */ (example), type: `/docs#problem-${slug}`, title, status }
}
