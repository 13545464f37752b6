import { exampleOf } from './example.js'

/** @import { Content, Operation, Resolve } from '../../api-docs/page-model.ts' */

/** A body up to this length stays on one line. */
const SHORT_BODY = 40

/**
 * A command to paste. `$TOKEN` and path parameters such as `$ID` are shell variables, which the steps of
 * "Start here" set.
 *
 * @param {Operation} operation
 * @param {Resolve} resolve
 */
export const curlCommand = (operation, resolve) => {
  const { method, body } = operation
  const lines = [`curl -sS ${methodFlag(operation)}${quotedUrl(operation)}`]
  if (operation.token !== 'none') lines.push('-H "authorization: Bearer $TOKEN"')
  if (body) lines.push(`-H 'content-type: ${body.mediaType}'`, dataFlag(body, resolve))
  if (method === 'head') lines.push('--head')
  return lines.join(' \\\n  ')
}

/** curl says POST by itself when it has a body. @param {Operation} operation */
const methodFlag = ({ method, body }) => {
  if (method === 'head' || method === (body ? 'post' : 'get')) return ''
  return `-X ${method.toUpperCase()} `
}

/** @param {Operation} operation */
const quotedUrl = ({ path, parameters }) => {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name) => `$${name.toUpperCase().replaceAll(/\W/g, '_')}`)
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(
      ({ name, example, schema }) =>
        `${name}=${encodeURIComponent(String(example ?? schema?.example ?? '…'))}`,
    )
  const url = `${location.origin}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`
  return /[$&?]/.test(url) ? `"${url}"` : url
}

/**
 * @param {Content} body
 * @param {Resolve} resolve
 */
const dataFlag = ({ mediaType, schema, example }, resolve) => {
  if (!/json/.test(mediaType)) return '--data-binary @file'
  const value = example ?? exampleOf(schema, 'required', resolve)
  const short = JSON.stringify(value)
  const text = short.length > SHORT_BODY ? JSON.stringify(value, null, 2).replaceAll('\n', '\n  ') : short
  return `-d '${text.replaceAll("'", "'\\''")}'`
}
