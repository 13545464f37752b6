import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookUp, type Path, parsePath, showPath } from '../../db/rules/paths.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'

const event = {
  action: 'opened',
  draft: null,
  size: 0,
  'x y': { z: 'spaced' },
  "it's": 'quoted',
  'a"b\\c': 'escaped',
  '': 'nameless',
  items: [{ id: 'first' }, { id: 'last' }],
  matrix: [
    [1, 2],
    [3, 4],
  ],
  list: { 0: 'a key', length: 'another' },
  run: () => 'called',
}
const documents = { $: event, $headers: { 'x-github-event': 'push' }, $event: { id: 7 } }

const find = (text: string): unknown => {
  const path = parsePath(text)
  assert.ok(path, `${text} is a path`)
  return lookUp(documents, path)
}

/** path, and what it finds in `documents`. */
const FOUND: [string, unknown][] = [
  ['$', event],
  ['$.action', 'opened'],
  ['$.draft', null],
  ['$.size', 0],
  ['$.items[0].id', 'first'],
  ['$.items[-1].id', 'last'],
  ['$.matrix[1][-2]', 3],
  ["$['x y'].z", 'spaced'],
  ['$["x y"]["z"]', 'spaced'],
  ['$["it\'s"]', 'quoted'],
  ["$['it\\'s']", 'quoted'],
  ['$["a\\"b\\\\c"]', 'escaped'],
  ["$['']", 'nameless'],
  ['$.list.0', 'a key'],
  ['$.list.length', 'another'],
  ['$headers.x-github-event', 'push'],
  ['$event.id', 7],
]
for (const [path, value] of FOUND) {
  test(`${path} finds its value`, () => assert.equal(find(path), value))
}

const MISSING = [
  '$.nothing',
  '$.action.length',
  '$.action[0]',
  '$.items[2]',
  '$.items[-3]',
  '$.items.0',
  '$.items.length',
  '$.list[0]',
  '$.draft.anything',
  '$other',
  '$headers.X-GitHub-Event',
]
for (const path of MISSING) {
  test(`${path} finds nothing`, () => assert.equal(find(path), undefined))
}

test('a path never reaches what every object inherits, nor a function', () => {
  for (const name of ['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty', 'run']) {
    for (const text of [
      `$.${name}`,
      `$['${name}']`,
      `$.items.${name}`,
      `$.action.${name}`,
      `$.run.${name}`,
    ]) {
      assert.equal(find(text), undefined, text)
    }
  }
  assert.equal(find('$constructor'), undefined)
})

test('a key of the document itself is found, whatever its name', () => {
  const document = JSON.parse('{"__proto__": {"constructor": 1}}')
  assert.equal(lookUp({ $: document }, { root: '$', keys: ['__proto__', 'constructor'] }), 1)
})

const NO_PATHS = [
  ...['', ' ', 'a', '.a', '$.', '$..a', '$.a.', '$ .a', '$.a b', ' $.a', '$.a ', '$$', '$5', '$_', '$a_b'],
  ...[
    '$[',
    '$[]',
    '$[a]',
    '$[1',
    '$[01]',
    '$[-0]',
    '$[+1]',
    '$[1.5]',
    '$[1e3]',
    '$[ 1 ]',
    '$[*]',
    '$.*',
    '$[0:2]',
  ],
  ...[
    '$[9999999999]',
    "$['a]",
    '$[\'a"]',
    "$['a\\']",
    "$['\\n']",
    "$['a''b']",
    '$.größe',
    '$.a\n',
    '$.a()',
    '$[?(@.a)]',
  ],
]
for (const text of NO_PATHS) {
  test(`${JSON.stringify(text)} is no path`, () => assert.equal(parsePath(text), undefined))
}

test('a path has at most 500 characters and 32 keys', () => {
  assert.ok(parsePath(`$.${'a'.repeat(498)}`))
  assert.equal(parsePath(`$.${'a'.repeat(499)}`), undefined)
  assert.equal(parsePath(`$['${'a'.repeat(5_000_000)}']`), undefined)
  assert.ok(parsePath(`$${'[0]'.repeat(32)}`))
  assert.equal(parsePath(`$${'[0]'.repeat(33)}`), undefined)
})

test('a path is shown in one way, however it was written', () => {
  assert.equal(showPath(parsePath(`$["a"]['b c'][-1]["it's"]`) as Path), "$.a['b c'][-1]['it\\'s']")
  assert.equal(showPath(parsePath('$headers["x-y"]') as Path), '$headers.x-y')
})

test('what is shown of any path is read as the same path', () => {
  const random = createRandom(7)
  const characters = [...'ab0_-.\'"\\[]$ {}?ä💥\n']
  const pick = (): string => characters[Math.floor(random() * characters.length)] ?? ''
  for (let round = 0; round < 2000; round++) {
    const keys = Array.from({ length: Math.floor(random() * 5) }, () =>
      random() < 0.3
        ? Math.floor(random() * 200) - 100
        : Array.from({ length: Math.floor(random() * 6) }, pick).join(''),
    )
    const path = { root: random() < 0.5 ? '$' : '$headers', keys }
    assert.deepEqual(parsePath(showPath(path)), path)
  }
})
