/**
 * Conditions on documents, as data: comparisons of what paths find, joined by `all`, `any` and `not`.
 *
 *     { "all": [{ "path": "$.action", "eq": "opened" }, { "not": { "path": "$.draft", "eq": true } }] }
 *
 * Types are never converted: a comparison of values of different types is false. So is one of a value that is not
 * there, but for those that ask for a difference (`ne`, `not_in`) or for just this (`exists: false`). `all` of nothing
 * is true and `any` of nothing false.
 */

import { isPlainObject } from './json-values.ts'
import { isOperator, OPERATORS, type OperatorName } from './operators.ts'
import { type Documents, type Fault, lookUp, parsePath, rootFault } from './paths.ts'

export type Condition = { all: Condition[] } | { any: Condition[] } | { not: Condition } | Comparison

/** With exactly one operator. */
type Comparison = { path: string } & { [Name in OperatorName]?: unknown }

type Place = Fault['path']
type Test = (documents: Documents) => boolean

const DEEPEST = 8
const MOST_COMPARISONS = 100
const GROUPS = ['all', 'any', 'not'] as const

const CONDITION_RULE = 'must be a condition such as {"path": "$.action", "eq": "opened"}'
const PATH_RULE = 'must be a path such as $.action'
const OPERATORS_RULE = `needs an operator: ${Object.keys(OPERATORS).join(', ')}`

/** Empty if the value is a Condition whose paths begin with one of `roots`. */
export const checkCondition = (value: unknown, roots: readonly string[]): Fault[] =>
  compile(value, roots).faults

/**
 * Reads the paths once, for a condition that is asked often. One that `checkCondition` would refuse throws: taken for
 * false, it would drop events silently.
 */
export const compileCondition = (condition: Condition): Test => {
  const { test, faults } = compile(condition, undefined)
  if (faults.length > 0) throw new Error('The condition has not been checked')
  return test
}

const compile = (
  condition: unknown,
  roots: readonly string[] | undefined,
): { test: Test; faults: Fault[] } => {
  const faults: Fault[] = []
  let comparisons = 0

  const visit = (part: unknown, at: Place, depth: number): Test => {
    if (comparisons > MOST_COMPARISONS) return never
    if (depth > DEEPEST) return refuse(at, `is nested deeper than ${DEEPEST} conditions`)
    if (!isPlainObject(part)) return refuse(at, CONDITION_RULE)
    const group = GROUPS.find((name) => Object.hasOwn(part, name))
    if (!group) return visitComparison(part, at)
    const others = Object.keys(part).filter((key) => key !== group)
    for (const key of others) refuse([...at, key], `does not go with ${group}`)
    const path = [...at, group]
    const inner = part[group]
    if (group === 'not') {
      const test = visit(inner, path, depth + 1)
      return (documents) => !test(documents)
    }
    if (!Array.isArray(inner)) return refuse(path, 'must be a list of conditions')
    const tests = inner.map((child, n) => visit(child, [...path, n], depth + 1))
    if (group === 'all') return (documents) => tests.every((test) => test(documents))
    return (documents) => tests.some((test) => test(documents))
  }

  const visitComparison = (part: Record<string, unknown>, at: Place): Test => {
    comparisons += 1
    if (comparisons > MOST_COMPARISONS) return refuse([], `has more than ${MOST_COMPARISONS} comparisons`)
    const path = typeof part.path === 'string' ? parsePath(part.path) : undefined
    const pathFault = path ? roots && rootFault(path, roots) : PATH_RULE
    if (pathFault) refuse([...at, 'path'], pathFault)
    const names = Object.keys(part).filter((key) => key !== 'path')
    if (names.length === 0) refuse(at, OPERATORS_RULE)
    const first = names.find(isOperator)
    for (const name of names) {
      const message = operatorFault(name, name === first, part[name])
      if (message) refuse([...at, name], message)
    }
    if (!path || !first || faults.length > 0) return never
    const test = OPERATORS[first].test(part[first])
    return (documents) => test(lookUp(documents, path))
  }

  const refuse = (path: Place, message: string): Test => {
    faults.push({ path, message })
    return never
  }

  return { test: visit(condition, [], 1), faults }
}

/** In place of what has faults. */
const never: Test = () => false

const operatorFault = (name: string, isFirst: boolean, operand: unknown): string | undefined => {
  if (!isOperator(name)) return 'is not a known operator'
  if (!isFirst) return 'is a second operator: join two comparisons with all or any'
  return OPERATORS[name].fits(operand) ? undefined : OPERATORS[name].rule
}
