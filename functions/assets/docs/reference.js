import { h, lazyDetails, row, table } from './dom.js'
import { fieldsTable } from './fields-table.js'
import { inline, prose } from './prose.js'

/** @import { Api } from '../../api-docs/page-model.ts' */

/** @param {Api} api */
export const intro = ({ title, version, description, openapi }) =>
  h(
    'header',
    { class: 'intro' },
    h('h1', {}, title, ' API'),
    h('div', { class: 'lead' }, prose(description)),
    h(
      'p',
      { class: 'facts' },
      h('span', {}, `Version ${version}`),
      h('a', { href: '/openapi.json' }, `OpenAPI ${openapi}`),
    ),
  )

/** @param {Api} api */
export const authentication = ({ securitySchemes, permissions }) =>
  h(
    'section',
    { id: 'authentication', 'data-place': true },
    h('h2', {}, 'Authentication'),
    h(
      'p',
      {},
      'Operations marked ',
      h('span', { class: 'token needed' }, 'Needs …'),
      ' are answered only with credentials that have the permission.',
    ),
    securitySchemes.map(({ type, scheme, bearerFormat, name, in: place, description }) =>
      h(
        'div',
        { class: 'scheme' },
        h(
          'p',
          {},
          h(
            'code',
            {},
            scheme === 'bearer' ? 'authorization: Bearer …' : `${place ?? type}: ${name ?? scheme}`,
          ),
          bearerFormat && h('span', { class: 'flag' }, bearerFormat),
        ),
        prose(description),
      ),
    ),
    permissions.length > 0 &&
      table(
        ['Permission', 'Least role', 'API key', 'Allows to'],
        permissions.map(({ name, role, key, about }) =>
          row({}, [h('code', {}, name)], [h('code', {}, role)], [key ? 'scope' : 'no'], [about]),
        ),
      ),
  )

/** The rows are what the `type` of a problem response points at. @param {Api} api */
export const problems = ({ problems: all }) =>
  h(
    'section',
    { id: 'problems', class: 'problems', 'data-place': true },
    h('h2', {}, 'Problems'),
    h(
      'p',
      { class: 'lead' },
      inline(
        'Every error is answered as `application/problem+json`. Its `type` leads to a row below, `detail` says what happened, `errors` names the fields at fault, and `request_id` finds the request in the logs.',
      ),
    ),
    table(
      ['Status', 'Problem', 'Type'],
      all.map(({ slug, status, title, description }) =>
        row(
          { id: `problem-${slug}` },
          [h('span', { class: `status status-${String(status).charAt(0)}` }, String(status))],
          [title, ...prose(description)],
          [h('a', { class: 'anchor', href: `#problem-${slug}` }, h('code', {}, slug))],
        ),
      ),
    ),
  )

/** @param {Api} api */
export const schemas = ({ schemas: all, resolve }) =>
  h(
    'section',
    { id: 'schemas', 'data-place': true },
    h('h2', {}, 'Schemas'),
    all.map(([name, schema]) =>
      lazyDetails(
        { id: `schema-${name}`, class: 'schema' },
        [h('h3', {}, name), h('span', { class: 'meaning' }, inline(schema.description))],
        () => fieldsTable(schema, resolve),
      ),
    ),
  )
