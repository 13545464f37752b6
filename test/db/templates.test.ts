import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Condition, checkCondition, compileCondition } from '../../db/rules/conditions.ts'
import type { Documents } from '../../db/rules/paths.ts'
import { checkTemplate, compileTemplate } from '../../db/rules/templates.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'

const ROOTS = ['$', '$headers']

const render = (template: unknown, documents: Documents) => compileTemplate(template)(documents)

const event = {
  name: 'octo',
  n: 3,
  zero: 0,
  yes: true,
  nothing: null,
  empty: '',
  tags: ['a', 'b'],
  repository: { url: 'https://git.example/r', 'full name': 'a/b' },
  trick: '{{ $.n }}',
  half: '\ud83d',
  other: '\udca5',
}
const documents = { $: event, $headers: { 'x-id': '42' } }

/** A template that has no faults, and what it becomes. */
const RENDERED: [unknown, unknown][] = [
  [null, null],
  [3, 3],
  ['', ''],
  ['plain', 'plain'],
  [[], []],
  // Lookups keep the type of what they find.
  ['$', event],
  ['$.name', 'octo'],
  ['$.n', 3],
  ['$.nothing', null],
  ['$.tags', event.tags],
  ['$.tags[-1]', 'b'],
  ["$.repository['full name']", 'a/b'],
  ['$headers.x-id', '42'],
  // A default stands in for what is not there, and not for null.
  ['$.missing ?? "none"', 'none'],
  ['$.missing??"none"', 'none'],
  ['$.missing  ??\n3', 3],
  ['$.missing ?? -1.5e2', -150],
  ['$.missing ?? null', null],
  ['$.missing ?? false', false],
  ['$.missing ?? []', []],
  ['$.missing ?? {}', {}],
  ['$.missing ?? "a ?? \\"b\\" \\u00e4"', 'a ?? "b" ä'],
  ['$.missing ?? "$.name"', '$.name'],
  ['$.nothing ?? "none"', null],
  ['$.zero ?? 7', 0],
  ['$.empty ?? "none"', ''],
  ['$ ?? 1', event],
  // Insertions make text.
  ['{{ $.n }}', '3'],
  ['{{$.n}}{{ $.yes }}', '3true'],
  ['Hello {{ $.name }}, {{ $.missing ?? "you" }}!', 'Hello octo, you!'],
  ['{{ $.missing ?? 4 }}{{ $.missing ?? "" }}', '4'],
  ['{{ $.missing ?? "}}" }}', '}}'],
  ["{{ $.repository['full name'] }}", 'a/b'],
  ['{"n":{"m":{{ $.n }}}}', '{"n":{"m":3}}'],
  ['{{ "{{" }} $.name }}', '{{ $.name }}'],
  ['{ } }} {', '{ } }} {'],
  [' $.name', ' $.name'],
  ['costs $.5', 'costs $.5'],
  // A dollar that begins no path is text; so is one that is doubled.
  ['$5', '$5'],
  ['$ 5', '$ 5'],
  ['$-', '$-'],
  ['$é', '$é'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the template is not one of JavaScript
  ['${{ $.n }}', '$3'],
  ['$$', '$'],
  ['$$5', '$5'],
  ['$$.name', '$.name'],
  ['$$$', '$$'],
  ['$$name is {{ $.name }}', '$name is octo'],
  // Keys are literal, and what is found is never read as a template.
  [
    ['$.trick', '{{ $.trick }}'],
    ['{{ $.n }}', '{{ $.n }}'],
  ],
  [
    { a: ['$.name', { b: '$.n' }], $: '$.yes' },
    { a: ['octo', { b: 3 }], $: true },
  ],
  [
    { '$.name': 1, '{{ $.n }}': 2 },
    { '$.name': 1, '{{ $.n }}': 2 },
  ],
]
for (const [template, value] of RENDERED) {
  test(`${JSON.stringify(template)} becomes ${JSON.stringify(value).slice(0, 40)}`, () => {
    assert.deepEqual(checkTemplate(template, ROOTS), [])
    assert.deepEqual(render(template, documents), { ok: true, value })
  })
}

const LOOKUP_RULE =
  'is no lookup such as $.a.b or $.a.b ?? "none"; text that begins with $ is written with $$'
const DEFAULT_RULE = 'needs a default after ?? such as "none", 3, true, null, [] or {}'
const bracesRule = (character: number): string =>
  `has a {{ at character ${character} that begins no insertion such as {{ $.a.b }}; write {{ "{{" }} for the braces themselves`

/** A string that is no template, and what is said about it when it is checked. */
const UNREADABLE: [string, string][] = [
  ['$.a costs 5', LOOKUP_RULE],
  ['$.a ', LOOKUP_RULE],
  ['$name is', LOOKUP_RULE],
  ['$[x]', LOOKUP_RULE],
  ['$.', LOOKUP_RULE],
  [`$.${'a'.repeat(600)}`, LOOKUP_RULE],
  ['$.a ?? "b" c', LOOKUP_RULE],
  ['$.a ?? 3 ?? 4', LOOKUP_RULE],
  ['$.a ??', DEFAULT_RULE],
  ['$ ?? none', DEFAULT_RULE],
  ["$.a ?? 'b'", DEFAULT_RULE],
  ['$.a ?? $.b', DEFAULT_RULE],
  ['$.a ?? "b', DEFAULT_RULE],
  ['$.a ?? 01', DEFAULT_RULE],
  ['$.a ?? 1e999', DEFAULT_RULE],
  ['$.a ?? [1]', DEFAULT_RULE],
  ['$.a ?? "\\ud83d"', DEFAULT_RULE],
  ['$.a ?? "\\u0000"', DEFAULT_RULE],
  ['$.a ?? "\\x"', DEFAULT_RULE],
  [`$.a ?? "${'a'.repeat(1_000_000)}"`, DEFAULT_RULE],
  ['a {{ name }}', bracesRule(3)],
  ['{{ $.a', bracesRule(1)],
  ['{{ $.a }', bracesRule(1)],
  ['{{', bracesRule(1)],
  ['{{}}', bracesRule(1)],
  ['{{{ $.a }}}', bracesRule(1)],
  ['{{ $.a + 1 }}', bracesRule(1)],
  ['{{ $.a ?? x }}', DEFAULT_RULE],
  ['{{ $.a ?? null }}', 'cannot put null into text'],
  ['{{ $.a ?? [] }}', 'cannot put a list into text'],
  ['{{ $.a ?? {} }}', 'cannot put an object into text'],
  ['$event.id', 'must begin with $ or $headers, not with $event'],
  ['a {{ $.b }} {{ $event.id }}', 'must begin with $ or $headers, not with $event'],
]
for (const [template, message] of UNREADABLE) {
  test(`${JSON.stringify(template).slice(0, 60)} ${message}`, () => {
    assert.deepEqual(checkTemplate({ a: [template] }, ROOTS), [{ path: ['a', 0], message }])
  })
}

/** A template that cannot be rendered from `documents`. */
const UNRENDERABLE: [string, string][] = [
  ['$.repository.ssh_url', 'needs $.repository.ssh_url, which is not there'],
  ['$["repository"]["x y"]', "needs $.repository['x y'], which is not there"],
  ['$.constructor', 'needs $.constructor, which is not there'],
  ['$event', 'needs $event, which is not there'],
  ['to {{ $.missing }}', 'needs $.missing, which is not there'],
  ['to {{ $.nothing }}', 'cannot put $.nothing into text: it is null'],
  ['to {{ $.nothing ?? "x" }}', 'cannot put $.nothing into text: it is null'],
  ['to {{ $.tags }}', 'cannot put $.tags into text: it is a list'],
  ['to {{ $.repository }}', 'cannot put $.repository into text: it is an object'],
]
for (const [template, message] of UNRENDERABLE) {
  test(`${template} ${message}`, () => {
    const faults = [{ path: ['payload', 'url'], message }]
    assert.deepEqual(render({ payload: { url: template } }, documents), { ok: false, faults })
  })
}

test('every fault of a template is told at once', () => {
  const rendered = render({ a: '$.x', b: ['fine', '{{ $.y }} {{ $.tags }}'] }, documents)
  assert.ok(!rendered.ok)
  assert.deepEqual(
    rendered.faults.map(({ path }) => path.join('.')),
    ['a', 'b.1', 'b.1'],
  )
})

test('a template that was never checked renders to its faults', () => {
  assert.deepEqual(render({ a: '$.' }, documents), {
    ok: false,
    faults: [{ path: ['a'], message: LOOKUP_RULE }],
  })
})

test('what is not JSON is refused', () => {
  for (const value of [undefined, Number.NaN, 1n, () => 1, Symbol('x'), new Date(0), new Map()]) {
    assert.deepEqual(checkTemplate({ a: value }, ROOTS), [{ path: ['a'], message: 'must be a JSON value' }])
  }
})

test('no key changes a prototype', () => {
  const template = JSON.parse('{"__proto__": {"admin": "$.yes"}, "constructor": "$.n"}')
  const rendered = render(template, documents)
  assert.ok(rendered.ok)
  const value = rendered.value as Record<string, unknown>
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.equal(value.admin, undefined)
  assert.equal(JSON.stringify(value), '{"__proto__":{"admin":true},"constructor":3}')
})

test('text that is made is well formed, and halves that meet are whole', () => {
  const whole = render(['$.half', 'a{{ $.half }}b', '{{ $.half }}{{ $.other }}'], documents)
  assert.deepEqual(whole, { ok: true, value: ['\ufffd', 'a\ufffdb', '💥'] })
})

test('a template is at most 32 deep and has at most 2000 strings', () => {
  const nest = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
  assert.deepEqual(checkTemplate(nest(32), ROOTS), [])
  assert.deepEqual(checkTemplate(nest(33), ROOTS), [
    { path: Array(32).fill(0), message: 'is nested too deep' },
  ])
  assert.equal(checkTemplate(nest(100_000), ROOTS).length, 1)
  assert.deepEqual(checkTemplate(Array(2000).fill('$.a'), ROOTS), [])
  assert.deepEqual(checkTemplate(Array(100_000).fill('$.'), ROOTS).at(-1), {
    path: [],
    message: 'has more than 2000 strings',
  })
})

test('a small template cannot make a huge value of a large document', () => {
  const large = { text: 'x'.repeat(200_000), list: Array(50_000).fill({ a: 1 }) }
  const faults = [{ path: [], message: 'would be longer than 1048576 characters' }]
  for (const template of ['{{ $.text }}'.repeat(10_000), Array(2000).fill('$.text'), Array(2000).fill('$')]) {
    assert.deepEqual(render(template, { $: large }), { ok: false, faults })
  }
  assert.ok(render('$', { $: large }).ok)
})

test('a compiled template renders each document anew, and nobody can change its defaults', () => {
  const make = compileTemplate({ total: '$.n', tags: '$.tags ?? []' })
  const first = make({ $: { n: 1 } })
  assert.deepEqual(first, { ok: true, value: { total: 1, tags: [] } })
  assert.ok(first.ok)
  ;(first.value as { tags: string[] }).tags.push('changed')
  assert.deepEqual(make({ $: { n: 2 } }), { ok: true, value: { total: 2, tags: [] } })
  assert.equal(make({ $: {} }).ok, false)
  assert.deepEqual(make({ $: { n: 3, tags: ['x'] } }), { ok: true, value: { total: 3, tags: ['x'] } })
})

const PIECES = [
  '$',
  '$.',
  '.a',
  '[0]',
  "['",
  '"]',
  '{{',
  '}}',
  '??',
  ' ',
  '"',
  '\\',
  'a',
  '-1',
  'null',
  '[]',
  '💥',
]
const KEYS = ['a', 'b', '$.a', '__proto__', 'constructor', '']

test('whatever the template and the document, rendering answers; what was checked fails only for what is missing', () => {
  const random = createRandom(11)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const some = <T>(make: () => T): T[] => Array.from({ length: Math.floor(random() * 5) }, make)
  const anyText = (): string => some(() => pick(PIECES)).join('')
  const anyJson = (depth: number): unknown => {
    const kind = random()
    if (depth > 4 || kind < 0.6) return random() < 0.8 ? anyText() : pick([null, true, 0, -1.5, 1e300])
    if (kind < 0.8) return some(() => anyJson(depth + 1))
    return Object.fromEntries(some(() => [pick(KEYS), anyJson(depth + 1)]))
  }
  let rendered = 0
  for (let round = 0; round < 20_000; round++) {
    const template = anyJson(0)
    const faults = checkTemplate(template, ['$'])
    const result = render(template, { $: anyJson(0) })
    if (result.ok) {
      rendered += 1
      assert.ok(JSON.stringify(result.value).isWellFormed())
    } else if (faults.length === 0) {
      for (const { message } of result.faults)
        assert.match(message, /which is not there$|^cannot put \S+ into text/)
    }
  }
  assert.ok(rendered > 1000, `${rendered} were rendered`)
})

test('asked for it, a default stands in for null too', () => {
  const template = {
    none: '$.nothing',
    same: '$.nothing ?? 1',
    text: '{{ $.nothing ?? "x" }}',
    zero: '$.zero ?? 1',
  }
  const found = compileTemplate(template, { defaultForNull: true })(documents)
  assert.deepEqual(found, { ok: true, value: { none: null, same: 1, text: 'x', zero: 0 } })
})

test('the examples of docs/templates.md do what it says', () => {
  const page = readFileSync('docs/templates.md', 'utf8')
  const [push, rows] = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json ?? ''))
  const told = [...page.matchAll(/`(\{".*?\})`/gs)].map(([, json]) => JSON.parse(json ?? ''))
  const [pushEvent, body, row, columns] = told
  const pushed = { $: pushEvent, $headers: { 'x-github-event': 'push' } }
  assert.deepEqual(checkCondition(push.filter, ROOTS), [])
  assert.deepEqual(checkTemplate(push.template, ROOTS), [])
  assert.equal(compileCondition(push.filter as Condition)(pushed), true)
  assert.equal(
    compileCondition(push.filter as Condition)({ ...pushed, $: { ...pushEvent, deleted: true } }),
    false,
  )
  const job = render(push.template, pushed)
  assert.ok(job.ok)
  const { name, payload } = job.value as { name: string; payload: { body: unknown } }
  assert.equal(name, 'deploy octocat/Hello-World')
  assert.deepEqual(payload.body, body)
  assert.deepEqual(checkCondition(rows.filter, ['$']), [])
  assert.equal(compileCondition(rows.filter as Condition)({ $: row }), true)
  assert.deepEqual(checkTemplate(rows.derive, ['$']), [])
  assert.deepEqual(render(rows.derive, { $: row }), { ok: true, value: columns })
})
