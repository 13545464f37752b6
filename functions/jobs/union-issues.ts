import type { z } from 'zod'

type Issue = z.core.$ZodIssue

/**
 * "Fits none of them" helps nobody whose payload means one of them. Which one it means is said by a field that has one
 * value in each, such as `"from": "http"`: then what is wrong with that one, or which values there are.
 */
export const spellOutUnion = (issue: Issue): Issue[] => {
  if (issue.code !== 'invalid_union') return [issue]
  const under = (inner: Issue): Issue => ({ ...inner, path: [...issue.path, ...inner.path] })
  const tags = issue.errors.map((alternative) => alternative.find(isAboutTag))
  const [meant, another] = issue.errors.filter((_, index) => tags[index] === undefined)
  if (meant && (!another || isSame(issue.errors)))
    return meant.flatMap((inner) => spellOutUnion(under(inner)))
  const [tag] = tags
  const isOfOneField = tags.every((other) => other?.path[0] === tag?.path[0])
  if (meant || !tag || !isOfOneField) return [issue]
  const values = tags.flatMap((other) => (other?.code === 'invalid_value' ? other.values : []))
  return [under({ ...tag, message: `must be one of ${values.join(', ')}` })]
}

const isAboutTag = (issue: Issue): boolean =>
  issue.code === 'invalid_value' && issue.values.length === 1 && issue.path.length === 1

/** As if something else stands there that is no object at all. */
const isSame = (alternatives: readonly Issue[][]): boolean =>
  new Set(alternatives.map((issues) => JSON.stringify(issues))).size === 1
