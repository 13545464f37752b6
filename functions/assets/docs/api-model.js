import { createResolver } from './references.js'

/**
 * @import { Answer, Api, BodyOrResponse, Content, OpenApiDocument, Operation, Parameter, Problem, Resolve,
 *   Tag } from '../../api-docs/page-model.ts'
 */

const METHODS = new Set(['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace'])
const UNTAGGED = 'other'

/**
 * The document in the shape in which the page shows it.
 *
 * @param {OpenApiDocument} document
 * @returns {Api}
 */
export const readApi = (document) => {
  const operations = readOperations(document)
  return {
    title: document.info?.title ?? 'API',
    version: document.info?.version ?? '',
    description: document.info?.description,
    openapi: document.openapi ?? '',
    tags: groupByTag(document.tags ?? [], operations),
    operations,
    schemas: Object.entries(document.components?.schemas ?? {}),
    problems: document['x-problems'] ?? [],
    permissions: document['x-permissions'] ?? [],
    securitySchemes: Object.values(document.components?.securitySchemes ?? {}),
    resolve: createResolver(document),
  }
}

/**
 * @param {OpenApiDocument} document
 * @returns {Operation[]}
 */
const readOperations = (document) => {
  const resolve = createResolver(document)
  const ids = new Set()
  return Object.entries(document.paths).flatMap(([path, unresolved]) => {
    const item = resolve(unresolved)
    const methods = Object.keys(item).filter((key) => METHODS.has(key))
    return methods.flatMap((method) => {
      const operation = item[method]
      if (!operation) return []
      return {
        id: unused(slug(`${method} ${path}`), ids),
        method,
        path,
        tag: operation.tags?.[0] ?? UNTAGGED,
        summary: operation.summary || `${method.toUpperCase()} ${path}`,
        description: operation.description,
        deprecated: operation.deprecated === true,
        token: tokenOf(operation.security ?? document.security ?? []),
        permission: operation['x-permission'],
        parameters: readParameters([...(item.parameters ?? []), ...(operation.parameters ?? [])], resolve),
        body: readContent(resolve(operation.requestBody)),
        answers: readAnswers(operation.responses ?? {}, document['x-problems'] ?? [], resolve),
      }
    })
  })
}

/**
 * Tags in the document's order, then those that only operations name. Tags without operations are left out.
 *
 * @param {{ name: string, description?: string }[]} declared
 * @param {Operation[]} operations
 * @returns {Tag[]}
 */
const groupByTag = (declared, operations) => {
  const descriptions = new Map(declared.map(({ name, description }) => [name, description]))
  const names = new Set([...descriptions.keys(), ...operations.map(({ tag }) => tag)])
  return [...names]
    .map((name) => ({
      id: `tag-${slug(name)}`,
      name,
      description: descriptions.get(name),
      operations: operations.filter(({ tag }) => tag === name),
    }))
    .filter((tag) => tag.operations.length > 0)
}

/** @param {object[]} requirements An empty one among them lets a request in without credentials. */
const tokenOf = (requirements) => {
  if (requirements.length === 0) return 'none'
  return requirements.some((requirement) => Object.keys(requirement).length === 0) ? 'optional' : 'needed'
}

/**
 * A later parameter replaces an earlier one of its name: the operation's that of its path.
 *
 * @param {Parameter[]} parameters
 * @param {Resolve} resolve
 */
const readParameters = (parameters, resolve) => {
  const resolved = parameters.map((parameter) => resolve(parameter))
  return [...new Map(resolved.map((parameter) => [`${parameter.in} ${parameter.name}`, parameter])).values()]
}

/**
 * @param {Record<string, BodyOrResponse>} responses
 * @param {Problem[]} problems
 * @param {Resolve} resolve
 * @returns {Answer[]}
 */
const readAnswers = (responses, problems, resolve) =>
  Object.entries(responses).map(([status, unresolved]) => {
    const response = resolve(unresolved)
    const { description = '' } = response
    const content = readContent(response)
    const isProblem = content?.mediaType === 'application/problem+json'
    // The description of a problem response is made of the titles of what may have happened.
    const named = problems.filter((one) => String(one.status) === status && description.includes(one.title))
    return { status, description, content, problems: isProblem ? named : [] }
  })

/**
 * @param {BodyOrResponse} holder
 * @returns {Content | undefined}
 */
const readContent = ({ content = {} }) => {
  const mediaType = 'application/json' in content ? 'application/json' : Object.keys(content)[0]
  const { schema = {}, example, examples = {} } = content[mediaType ?? ''] ?? {}
  return mediaType ? { mediaType, schema, example: example ?? Object.values(examples)[0]?.value } : undefined
}

/** `GET /jobs/{id}` → `get-jobs-id` @param {string} text */
const slug = (text) =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')

/**
 * @param {string} id
 * @param {Set<string>} taken
 */
const unused = (id, taken) => {
  let free = id
  for (let n = 2; taken.has(free); n++) free = `${id}-${n}`
  taken.add(free)
  return free
}
