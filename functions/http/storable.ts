import { toPointer } from './problem.ts'

export type Unstorable = { reason: 'depth' | 'value'; pointer: string; detail: string }

/**
 * The first value below `value` that Postgres would refuse or change: text with NUL or half a surrogate pair,
 * a number beyond what a double holds, or nesting beyond `maxDepth`.
 */
export const findUnstorable = (value: unknown, maxDepth: number): Unstorable | undefined =>
  visit(value, [], maxDepth)

const visit = (value: unknown, path: string[], maxDepth: number): Unstorable | undefined => {
  if (typeof value === 'string') return refuse(textFault(value), path)
  if (typeof value === 'number' && !Number.isFinite(value))
    return refuse('is a number too large to keep exact: send it as a string', path)
  if (typeof value !== 'object' || value === null) return undefined
  if (path.length >= maxDepth)
    return { reason: 'depth', pointer: toPointer(path), detail: 'is nested too deep' }
  for (const [key, child] of Object.entries(value)) {
    const found = refuse(textFault(key), path) ?? visit(child, [...path, key], maxDepth)
    if (found) return found
  }
  return undefined
}

const textFault = (text: string): string | undefined => {
  if (text.includes('\0')) return 'contains a NUL character'
  if (!text.isWellFormed()) return 'contains half of a surrogate pair'
  return undefined
}

const refuse = (detail: string | undefined, path: string[]): Unstorable | undefined =>
  detail === undefined ? undefined : { reason: 'value', pointer: toPointer(path), detail }
