import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, checkCondition, compileCondition } from '../../db/rules/conditions.ts'

const ROOTS = ['$', '$headers']
const documents = {
  $: {
    action: 'opened',
    number: 42,
    draft: false,
    closed_at: null,
    created_at: '2026-03-01T12:00:00Z',
    labels: ['bug', 'urgent', { name: 'big' }],
    user: { login: 'octocat', id: 1 },
  },
  $headers: { 'x-github-event': 'pull_request' },
}
const saysOf = (condition: unknown): boolean => {
  assert.deepEqual(checkCondition(condition, ROOTS), [])
  return compileCondition(condition as Condition)(documents)
}

/** operator, path, operand, and whether it holds in `documents`. */
const CASES: [string, string, unknown, boolean][] = [
  ['eq', '$.action', 'opened', true],
  ['eq', '$.action', 'closed', false],
  ['eq', '$.number', 42, true],
  ['eq', '$.number', '42', false],
  ['eq', '$.draft', false, true],
  ['eq', '$.draft', 0, false],
  ['eq', '$.closed_at', null, true],
  ['eq', '$.missing', null, false],
  ['eq', '$.user', { id: 1, login: 'octocat' }, true],
  ['eq', '$.user', { id: 1 }, false],
  ['eq', '$.user', { id: 1, login: 'octocat', more: null }, false],
  ['eq', '$.labels', ['bug', 'urgent', { name: 'big' }], true],
  ['eq', '$.labels', ['urgent', 'bug', { name: 'big' }], false],
  ['eq', '$.labels', { 0: 'bug', 1: 'urgent', 2: { name: 'big' } }, false],
  ['eq', '$headers.x-github-event', 'pull_request', true],
  ['ne', '$.action', 'closed', true],
  ['ne', '$.action', 'opened', false],
  ['ne', '$.number', '42', true],
  ['ne', '$.missing', 'opened', true],
  ['ne', '$.closed_at', null, false],
  ['gt', '$.number', 41, true],
  ['gt', '$.number', 42, false],
  ['gt', '$.number', '41', false],
  ['gt', '$.missing', -1, false],
  ['gt', '$.closed_at', -1, false],
  ['gte', '$.number', 42, true],
  ['gte', '$.created_at', '2026-03-01', true],
  ['lt', '$.number', 42.5, true],
  ['lt', '$.number', '5', false],
  ['lt', '$.created_at', '2026-03-01T12:00:01Z', true],
  ['lt', '$.draft', 1, false],
  ['lt', '$.missing', 'z', false],
  ['lte', '$.action', 'opened', true],
  ['lte', '$.action', 'Opened', false],
  ['in', '$.action', ['opened', 'reopened'], true],
  ['in', '$.action', ['closed', null, 1], false],
  ['in', '$.action', [], false],
  ['in', '$.user', [1, { login: 'octocat', id: 1 }], true],
  ['in', '$.number', ['42'], false],
  ['in', '$.missing', [null, ''], false],
  ['not_in', '$.action', ['closed'], true],
  ['not_in', '$.action', ['opened'], false],
  ['not_in', '$.missing', ['opened'], true],
  ['contains', '$.action', 'pen', true],
  ['contains', '$.action', 'PEN', false],
  ['contains', '$.labels', 'urgent', true],
  ['contains', '$.labels', 'urg', false],
  ['contains', '$.labels', { name: 'big' }, true],
  ['contains', '$.labels', null, false],
  ['contains', '$.user', 'login', false],
  ['contains', '$.number', 4, false],
  ['contains', '$.number', '4', false],
  ['contains', '$.missing', '', false],
  ['starts_with', '$.action', 'open', true],
  ['starts_with', '$.action', 'pen', false],
  ['starts_with', '$.number', '4', false],
  ['starts_with', '$.missing', '', false],
  ['ends_with', '$.created_at', 'Z', true],
  ['ends_with', '$.labels', 'urgent', false],
  ['exists', '$.action', true, true],
  ['exists', '$.action', false, false],
  ['exists', '$.closed_at', true, true],
  ['exists', '$.missing', true, false],
  ['exists', '$.missing', false, true],
  ['exists', '$.user.constructor', false, true],
]
for (const [operator, path, operand, expected] of CASES) {
  test(`${path} ${operator} ${JSON.stringify(operand)} is ${expected}`, () => {
    assert.equal(saysOf({ path, [operator]: operand }), expected)
  })
}

const YES: Condition = { path: '$.action', eq: 'opened' }
const NO: Condition = { path: '$.action', eq: 'closed' }
const GROUPS: [Condition, boolean][] = [
  [{ all: [YES, YES] }, true],
  [{ all: [YES, NO] }, false],
  [{ all: [] }, true],
  [{ any: [NO, YES] }, true],
  [{ any: [NO, NO] }, false],
  [{ any: [] }, false],
  [{ not: NO }, true],
  [{ not: { any: [NO, { all: [YES, { not: NO }] }] } }, false],
  [{ not: { path: '$.missing', eq: 1 } }, true],
]
for (const [condition, expected] of GROUPS) {
  test(`${JSON.stringify(condition)} is ${expected}`, () => assert.equal(saysOf(condition), expected))
}

const CONDITION_RULE = 'must be a condition such as {"path": "$.action", "eq": "opened"}'
const PATH_RULE = 'must be a path such as $.action'
const VALUES_RULE = 'must be a list of at most 100 values'

/** What is no condition, and what is said about it. */
const FAULTS: [unknown, (string | number)[], string][] = [
  [null, [], CONDITION_RULE],
  ['$.action', [], CONDITION_RULE],
  [[YES], [], CONDITION_RULE],
  [{ all: YES }, ['all'], 'must be a list of conditions'],
  [{ any: [YES, 3] }, ['any', 1], CONDITION_RULE],
  [{ not: [YES] }, ['not'], CONDITION_RULE],
  [{ all: [YES], any: [] }, ['any'], 'does not go with all'],
  [{ not: YES, path: '$.a' }, ['path'], 'does not go with not'],
  [{ eq: 1 }, ['path'], PATH_RULE],
  [{ path: 'action', eq: 1 }, ['path'], PATH_RULE],
  [{ path: 3, eq: 1 }, ['path'], PATH_RULE],
  [{ path: '$event.id', eq: 1 }, ['path'], 'must begin with $ or $headers, not with $event'],
  [
    { path: '$.a' },
    [],
    'needs an operator: eq, ne, gt, gte, lt, lte, in, not_in, contains, starts_with, ends_with, exists',
  ],
  [{ path: '$.a', equals: 1 }, ['equals'], 'is not a known operator'],
  [{ path: '$.a', constructor: 1 }, ['constructor'], 'is not a known operator'],
  [JSON.parse('{"path": "$.a", "__proto__": 1}'), ['__proto__'], 'is not a known operator'],
  [{ path: '$.a', gt: 1, lt: 3 }, ['lt'], 'is a second operator: join two comparisons with all or any'],
  [{ path: '$.a', gt: null }, ['gt'], 'must be a number or a text'],
  [{ path: '$.a', lte: Number.NaN }, ['lte'], 'must be a number or a text'],
  [{ path: '$.a', eq: undefined }, ['eq'], 'must be a JSON value'],
  [{ path: '$.a', ne: { at: new Date(0) } }, ['ne'], 'must be a JSON value'],
  [{ path: '$.a', in: 'abc' }, ['in'], VALUES_RULE],
  [{ path: '$.a', not_in: Array(101).fill(1) }, ['not_in'], VALUES_RULE],
  [{ path: '$.a', starts_with: 3 }, ['starts_with'], 'must be a text'],
  [{ path: '$.a', ends_with: null }, ['ends_with'], 'must be a text'],
  [{ path: '$.a', exists: 'yes' }, ['exists'], 'must be true or false'],
  [{ all: [{ any: [{ path: '$.a', is: 1 }] }] }, ['all', 0, 'any', 0, 'is'], 'is not a known operator'],
]
for (const [value, path, message] of FAULTS) {
  test(`${JSON.stringify(value).slice(0, 60)} ${message}`, () => {
    assert.deepEqual(checkCondition(value, ROOTS), [{ path, message }])
  })
}

const nest = (depth: number): Condition => (depth === 1 ? YES : { not: nest(depth - 1) })

test('a condition is at most eight deep and makes at most 100 comparisons', () => {
  assert.deepEqual(checkCondition(nest(8), ROOTS), [])
  const [deep] = checkCondition(nest(9), ROOTS)
  assert.deepEqual(deep, { path: Array(8).fill('not'), message: 'is nested deeper than 8 conditions' })
  assert.equal(checkCondition(nest(5000), ROOTS).length, 1)
  assert.deepEqual(checkCondition({ any: Array(100).fill(YES) }, ROOTS), [])
  assert.deepEqual(checkCondition({ any: Array(100_000).fill(YES) }, ROOTS), [
    { path: [], message: 'has more than 100 comparisons' },
  ])
})

test('an operand that is nested without end is refused, and a document that is does no harm', () => {
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
  assert.equal(checkCondition({ path: '$.a', eq: deep }, ROOTS)[0]?.message, 'must be a JSON value')
  assert.equal(compileCondition({ path: '$', eq: [[[]]] })({ $: deep }), false)
})

test('keys that objects inherit make no two values equal', () => {
  assert.equal(compileCondition({ path: '$', eq: { toString: 1 } })({ $: { a: 1 } }), false)
  assert.equal(compileCondition({ path: '$', eq: JSON.parse('{"__proto__": {}}') })({ $: { a: 1 } }), false)
  assert.equal(
    compileCondition({ path: '$', eq: JSON.parse('{"__proto__": 1}') })({
      $: JSON.parse('{"__proto__": 1}'),
    }),
    true,
  )
})

test('a compiled condition answers for each document anew', () => {
  const isLarge = compileCondition({ path: '$.n', gte: 10 })
  assert.deepEqual(
    [9, 10, '10', null].map((n) => isLarge({ $: { n } })),
    [false, true, false, false],
  )
})

test('a condition that was never checked is not taken for false', () => {
  assert.throws(() => compileCondition({ path: 'action', eq: 1 }), /has not been checked/)
  assert.throws(() => compileCondition({ path: '$.a' } as unknown as Condition), /has not been checked/)
})
