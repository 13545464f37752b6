import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { spellOutUnion } from '../../functions/jobs/union-issues.ts'
import { etlJob } from '../../worker-runtime/handlers/etl/etl.ts'
import { describePayload } from '../../worker-runtime/payload-schema.ts'

const schema = z.fromJSONSchema(JSON.parse(JSON.stringify(describePayload(etlJob.schema))))

const said = (payload: unknown): string[] =>
  (schema.safeParse(payload).error?.issues ?? [])
    .flatMap(spellOutUnion)
    .map(({ path, code, message }) => `${path.join('.')} ${code === 'invalid_union' ? 'union' : message}`)

const load = { to: 'result' }

/** a payload, and where something is said of it */
const cases: [string, unknown, RegExp[]][] = [
  [
    'an alternative that there is not',
    { extract: { from: 'ftp' }, load },
    [/^extract\.from must be one of inline, http, postgres$/],
  ],
  [
    'a field of the one that is meant',
    { extract: { from: 'http', url: 'https://example.com', formt: 'csv' }, load },
    [/^extract\.format /, /^extract Unrecognized key: "formt"$/],
  ],
  ['something that is none of them', { extract: 1, load }, [/^extract .*expected object/]],
  ['nothing', { load }, [/^extract .*expected object/]],
]

for (const [what, payload, expected] of cases) {
  test(`a payload is told what is wrong, not that it fits nothing: ${what}`, () => {
    const lines = said(payload)
    assert.equal(lines.length, expected.length, lines.join('\n'))
    for (const [index, pattern] of expected.entries()) assert.match(lines[index] ?? '', pattern)
  })
}

test('alternatives that no field tells apart stay together', () => {
  const { error } = z.union([z.string(), z.int()]).safeParse({})
  assert.equal(error?.issues.flatMap(spellOutUnion)[0]?.code, 'invalid_union')
})
