/** The comparisons of conditions: what each takes, and what it says about a value (undefined: there is none). */

import { isJson, isScalar, sameJson } from './json-values.ts'

type Test = (value: unknown) => boolean

type Operator = {
  /** What to say if the operand does not fit. */
  readonly rule: string
  readonly fits: (operand: unknown) => boolean
  readonly test: (operand: unknown) => Test
}

/** An operator by its test of a value against an operand that fits. */
const json = (test: Operator['test']): Operator => ({ rule: 'must be a JSON value', fits: isOperand, test })

const values = (test: (operand: unknown[]) => Test): Operator => ({
  rule: `must be a list of at most ${MOST_VALUES} values`,
  fits: (operand) => Array.isArray(operand) && operand.length <= MOST_VALUES && operand.every(isOperand),
  test: (operand) => test(operand as unknown[]),
})

/** Numbers with numbers, texts with texts by code unit; anything else has no order. */
const order = (decide: (value: number | string, operand: number | string) => boolean): Operator => ({
  rule: 'must be a number or a text',
  fits: (operand) => typeof operand === 'string' || Number.isFinite(operand),
  test: (operand) => (value) => typeof value === typeof operand && decide(value as number, operand as number),
})

const text = (decide: (value: string, operand: string) => boolean): Operator => ({
  rule: 'must be a text',
  fits: (operand) => typeof operand === 'string',
  test: (operand) => (value) => typeof value === 'string' && decide(value, operand as string),
})

const MOST_VALUES = 100

/** Comparing goes as deep as the operand: this bounds it. */
const DEEPEST_OPERAND = 32

const isOperand = (operand: unknown): boolean => isJson(operand, DEEPEST_OPERAND)

const equals = (operand: unknown): Test =>
  isScalar(operand) ? (value) => value === operand : (value) => sameJson(operand, value)

const isAmong = (operand: readonly unknown[]): Test => {
  const scalars = new Set<unknown>(operand.filter(isScalar))
  const others = operand.filter((value) => !isScalar(value))
  return (value) => scalars.has(value) || others.some((other) => sameJson(other, value))
}

const contains = (operand: unknown): Test => {
  const isSame = equals(operand)
  return (value) => {
    if (Array.isArray(value)) return value.some(isSame)
    return typeof value === 'string' && typeof operand === 'string' && value.includes(operand)
  }
}

const not =
  <Operand>(test: (operand: Operand) => Test) =>
  (operand: Operand): Test => {
    const positive = test(operand)
    return (value) => !positive(value)
  }

export const OPERATORS = {
  eq: json(equals),
  ne: json(not(equals)),
  gt: order((value, operand) => value > operand),
  gte: order((value, operand) => value >= operand),
  lt: order((value, operand) => value < operand),
  lte: order((value, operand) => value <= operand),
  in: values(isAmong),
  not_in: values(not(isAmong)),
  contains: json(contains),
  starts_with: text((value, operand) => value.startsWith(operand)),
  ends_with: text((value, operand) => value.endsWith(operand)),
  exists: {
    rule: 'must be true or false',
    fits: (operand) => typeof operand === 'boolean',
    test: (operand) => (value) => (value !== undefined) === operand,
  },
} as const satisfies Record<string, Operator>

export type OperatorName = keyof typeof OPERATORS

export const isOperator = (name: string): name is OperatorName => Object.hasOwn(OPERATORS, name)
