/** The comparisons of conditions: what each takes, and what it says about a value (undefined: there is none). */

import { isJson, isScalar, sameJson } from './json-values.ts'

type Test = (value: unknown) => boolean

type Operator = {
  /** What to say if the operand does not fit. */
  readonly rule: string
  readonly fits: (operand: unknown) => boolean
  readonly test: (operand: unknown) => Test
}

export const MOST_VALUES = 100

/** Comparing goes as deep as the operand: this bounds it. */
const DEEPEST_OPERAND = 32

const fitsJson = (operand: unknown): boolean => isJson(operand, DEEPEST_OPERAND)
const fitsOrder = (operand: unknown): boolean => typeof operand === 'string' || Number.isFinite(operand)
const fitsText = (operand: unknown): boolean => typeof operand === 'string'
const fitsValues = (operand: unknown): boolean =>
  Array.isArray(operand) && operand.length <= MOST_VALUES && operand.every(fitsJson)

const JSON_RULE = 'must be a JSON value'
const ORDER_RULE = 'must be a number or a text'
const TEXT_RULE = 'must be a text'
const VALUES_RULE = `must be a list of at most ${MOST_VALUES} values`

const equals = (operand: unknown): Test =>
  isScalar(operand) ? (value) => value === operand : (value) => sameJson(operand, value)

const isAmong = (operand: unknown): Test => {
  const values = operand as unknown[]
  const scalars = new Set(values.filter(isScalar))
  const others = values.filter((value) => !isScalar(value))
  return (value) => scalars.has(value as string) || others.some((other) => sameJson(other, value))
}

const not =
  (test: (operand: unknown) => Test) =>
  (operand: unknown): Test => {
    const positive = test(operand)
    return (value) => !positive(value)
  }

/** Numbers with numbers, texts with texts by code unit; anything else has no order. */
const inOrder =
  (decide: (value: number | string, operand: number | string) => boolean) =>
  (operand: unknown): Test => {
    const type = typeof operand
    return (value) => typeof value === type && decide(value as number, operand as number)
  }

const contains = (operand: unknown): Test => {
  const isSame = equals(operand)
  return (value) => {
    if (Array.isArray(value)) return value.some(isSame)
    return typeof value === 'string' && typeof operand === 'string' && value.includes(operand)
  }
}

export const OPERATORS = {
  eq: { rule: JSON_RULE, fits: fitsJson, test: equals },
  ne: { rule: JSON_RULE, fits: fitsJson, test: not(equals) },
  gt: { rule: ORDER_RULE, fits: fitsOrder, test: inOrder((value, operand) => value > operand) },
  gte: { rule: ORDER_RULE, fits: fitsOrder, test: inOrder((value, operand) => value >= operand) },
  lt: { rule: ORDER_RULE, fits: fitsOrder, test: inOrder((value, operand) => value < operand) },
  lte: { rule: ORDER_RULE, fits: fitsOrder, test: inOrder((value, operand) => value <= operand) },
  in: { rule: VALUES_RULE, fits: fitsValues, test: isAmong },
  not_in: { rule: VALUES_RULE, fits: fitsValues, test: not(isAmong) },
  contains: { rule: JSON_RULE, fits: fitsJson, test: contains },
  starts_with: {
    rule: TEXT_RULE,
    fits: fitsText,
    test: (operand) => (value) => typeof value === 'string' && value.startsWith(operand as string),
  },
  ends_with: {
    rule: TEXT_RULE,
    fits: fitsText,
    test: (operand) => (value) => typeof value === 'string' && value.endsWith(operand as string),
  },
  exists: {
    rule: 'must be true or false',
    fits: (operand) => typeof operand === 'boolean',
    test: (operand) => (value) => (value !== undefined) === operand,
  },
} as const satisfies Record<string, Operator>

export type OperatorName = keyof typeof OPERATORS

export const isOperator = (name: string): name is OperatorName => Object.hasOwn(OPERATORS, name)
