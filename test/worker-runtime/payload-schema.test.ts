import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createHandlers } from '../../worker-runtime/handlers/index.ts'
import { describePayload } from '../../worker-runtime/payload-schema.ts'

/** schema, a payload that the handler takes, and one that submission should refuse already, if it can tell. */
const cases: [string, z.ZodType, unknown, unknown?][] = [
  ['plain fields', z.strictObject({ a: z.string().min(2) }), { a: 'xy' }, { a: 'x' }],
  ['defaults', z.object({ a: z.int().default(1) }), {}, { a: 1.5 }],
  ['coercion', z.object({ a: z.coerce.number() }), { a: '5' }],
  ['preprocessing', z.object({ a: z.preprocess((v) => Number(v), z.number()) }), { a: '5' }],
  ['a fallback', z.object({ a: z.number().catch(1) }), { a: 'x' }],
  [
    'text that is changed first',
    z.object({
      a: z
        .string()
        .toLowerCase()
        .regex(/^[a-z]+$/),
    }),
    { a: 'ABC' },
  ],
  ['a pattern with flags', z.object({ a: z.string().regex(/^abc$/i) }), { a: 'ABC' }],
  ['a pattern', z.object({ a: z.string().regex(/^abc$/) }), { a: 'abc' }, { a: 'ABC' }],
  ['a transform', z.object({ a: z.string().transform((text) => text.length) }), { a: 'abc' }, { a: 1 }],
  ['a refinement', z.object({ a: z.string().refine((text) => text !== 'no') }), { a: 'yes' }, { a: 1 }],
  ['a date', z.object({ a: z.coerce.date() }), { a: '2026-01-01' }],
]

for (const [what, schema, taken, refused] of cases) {
  test(`${what}: what the handler takes passes at submission`, () => {
    const atSubmission = z.fromJSONSchema(JSON.parse(JSON.stringify(describePayload(schema))))
    assert.ok(schema.safeParse(taken).success, 'the handler takes it')
    assert.ok(atSubmission.safeParse(taken).success, JSON.stringify(describePayload(schema)))
    if (refused !== undefined) assert.equal(atSubmission.safeParse(refused).success, false)
  })
}

test('every handler has a schema that the edge can read', () => {
  const handlers = createHandlers({ shellAllow: ['/bin/true'] })
  for (const { schema } of handlers) assert.ok(z.fromJSONSchema(describePayload(schema)))
})
