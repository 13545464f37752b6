/**
 * Conditions on documents, as data: comparisons of what paths find, joined by `all`, `any` and `not`.
 *
 *     { "all": [{ "path": "$.action", "eq": "opened" }, { "not": { "path": "$.draft", "eq": true } }] }
 *
 * Types are never converted: a comparison of values of different types is false. So is one of a value that is not there,
 * but for those that ask for a difference (`ne`, `not_in`) or for just this (`exists: false`). `all` of nothing is true
 * and `any` of nothing false.
 */

import { isPlainObject } from './json-values.ts'
import { isOperator, OPERATORS, type OperatorName } from './operators.ts'
import { type Documents, type Fault, lookUp, parsePath, rootFault } from './paths.ts'

export type Condition = { all: Condition[] } | { any: Condition[] } | { not: Condition } | Comparison

/** With exactly one operator. */
type Comparison = { path: string } & { [Name in OperatorName]?: unknown }

type Place = Fault['path']

const DEEPEST = 8
const MOST_COMPARISONS = 100
const GROUPS = ['all', 'any', 'not'] as const
type Group = (typeof GROUPS)[number]

const CONDITION_RULE = 'must be a condition such as {"path": "$.action", "eq": "opened"}'
const PATH_RULE = 'must be a path such as $.action'
const OPERATORS_RULE = `needs an operator: ${Object.keys(OPERATORS).join(', ')}`

/** Empty if the value is a Condition whose paths begin with one of `roots`. */
export const checkCondition = (value: unknown, roots: readonly string[]): Fault[] => {
  let comparisons = 0

  const visit = (part: unknown, at: Place, depth: number): Fault[] => {
    if (comparisons > MOST_COMPARISONS) return []
    if (depth > DEEPEST) return [{ path: at, message: `is nested deeper than ${DEEPEST} conditions` }]
    if (!isPlainObject(part)) return [{ path: at, message: CONDITION_RULE }]
    const group = GROUPS.find((name) => Object.hasOwn(part, name))
    if (group) return [...besides(group, part, at), ...visitGroup(group, part[group], at, depth + 1)]
    comparisons += 1
    if (comparisons <= MOST_COMPARISONS) return comparisonFaults(part, at, roots)
    return [{ path: [], message: `has more than ${MOST_COMPARISONS} comparisons` }]
  }

  const visitGroup = (group: Group, inner: unknown, at: Place, depth: number): Fault[] => {
    const path = [...at, group]
    if (group === 'not') return visit(inner, path, depth)
    if (!Array.isArray(inner)) return [{ path, message: 'must be a list of conditions' }]
    return inner.flatMap((child, n) => visit(child, [...path, n], depth))
  }

  return visit(value, [], 1)
}

const besides = (group: Group, part: Record<string, unknown>, at: Place): Fault[] =>
  Object.keys(part)
    .filter((key) => key !== group)
    .map((key) => ({ path: [...at, key], message: `does not go with ${group}` }))

const comparisonFaults = (part: Record<string, unknown>, at: Place, roots: readonly string[]): Fault[] => {
  const ofPath = pathFault(part.path, roots)
  const faults: Fault[] = ofPath ? [{ path: [...at, 'path'], message: ofPath }] : []
  const names = Object.keys(part).filter((key) => key !== 'path')
  if (names.length === 0) faults.push({ path: at, message: OPERATORS_RULE })
  const first = names.find(isOperator)
  for (const name of names) {
    const message = operatorFault(name, name === first, part[name])
    if (message) faults.push({ path: [...at, name], message })
  }
  return faults
}

const operatorFault = (name: string, isFirst: boolean, operand: unknown): string | undefined => {
  if (!isOperator(name)) return 'is not a known operator'
  if (!isFirst) return 'is a second operator: join two comparisons with all or any'
  return OPERATORS[name].fits(operand) ? undefined : OPERATORS[name].rule
}

const pathFault = (text: unknown, roots: readonly string[]): string | undefined => {
  const path = typeof text === 'string' ? parsePath(text) : undefined
  return path ? rootFault(path, roots) : PATH_RULE
}

/**
 * Reads the paths once, for a condition that is asked often. One that `checkCondition` would refuse throws: taken for
 * false, it would drop events silently.
 */
export const compileCondition = (condition: Condition): ((documents: Documents) => boolean) => {
  if ('all' in condition) {
    const parts = condition.all.map(compileCondition)
    return (documents) => parts.every((part) => part(documents))
  }
  if ('any' in condition) {
    const parts = condition.any.map(compileCondition)
    return (documents) => parts.some((part) => part(documents))
  }
  if ('not' in condition) {
    const part = compileCondition(condition.not)
    return (documents) => !part(documents)
  }
  return compileComparison(condition)
}

const compileComparison = (comparison: Comparison): ((documents: Documents) => boolean) => {
  const path = parsePath(comparison.path)
  const name = Object.keys(comparison).find(isOperator)
  if (!path || !name) throw new Error('The condition has not been checked')
  const test = OPERATORS[name].test(comparison[name])
  return (documents) => test(lookUp(documents, path))
}
