import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { schema } from '../../../worker-runtime/handlers/ml/schema.ts'
import { describePayload } from '../../../worker-runtime/payload-schema.ts'
import { documentedJobs } from '../../support/ml-docs.ts'

const atSubmission = z.fromJSONSchema(JSON.parse(JSON.stringify(describePayload(schema))))

const series = { from: 'inline', values: [1, 2, 3] }
const query = { from: 'postgres', connection: 'shop', query: 'select 1' }

/** a payload, what is said about it with the place, and whether the edge says so at submission */
const refusals: [unknown, string, boolean][] = [
  [{ series }, 'horizon Invalid input', true],
  [{ series, horizon: 0 }, 'horizon Too small', true],
  [{ series, horizon: 1_001 }, 'horizon Too big', true],
  [{ series, horizon: 1.5 }, 'horizon Invalid input', true],
  [{ horizon: 1 }, 'series Invalid input', true],
  [{ series: { from: 'ftp' }, horizon: 1 }, 'series.from Invalid discriminator value', true],
  [{ series: { from: 'inline', values: [1, 'x'] }, horizon: 1 }, 'series.values.1 Invalid input', true],
  [{ series: { from: 'inline', values: [1e101] }, horizon: 1 }, 'series.values.0 Too big', true],
  [
    { series: { from: 'inline', values: [Number.POSITIVE_INFINITY] }, horizon: 1 },
    'series.values.0 Invalid input',
    false,
  ],
  [{ series: { from: 'http', url: 'ftp://example.com' }, horizon: 1 }, 'series.url is not an http:', true],
  [{ series: { ...query, connection: 'My DB' }, horizon: 1 }, 'series.connection is not the name', true],
  [{ series, horizon: 5, holdout: 4 }, 'holdout is shorter than the horizon', false],
  [{ series, horizon: 5, season: 0 }, 'season Too small', true],
  [{ series, horizon: 5, epochs: 1_001 }, 'epochs Too big', true],
  [{ series, horizon: 5, hidden: 25 }, 'hidden Too big', true],
  [{ series, horizon: 5, missing: 'guess' }, 'missing Invalid option', true],
  [{ series, horizon: 5, seed: -1 }, 'seed Too small', true],
  [{ series, horizon: 5, quantiles: [0.5] }, ' Unrecognized key: "quantiles"', true],
]

describe('a payload is refused with its place:', () => {
  for (const [payload, said, isSeenAtSubmission] of refusals) {
    it(said, () => {
      const { error } = schema.safeParse(payload)
      const issues = (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`)
      assert.ok(issues[0]?.startsWith(said), issues.join('\n'))
      if (isSeenAtSubmission) assert.equal(atSubmission.safeParse(payload).success, false)
    })
  }
})

describe('the payloads of docs/ml.md', () => {
  it('are there for each source', () => {
    const sources = documentedJobs().map(({ payload }) => (payload.series as { from: string }).from)
    assert.deepEqual(new Set(sources), new Set(['inline', 'http', 'postgres']))
  })

  for (const { name, type, payload } of documentedJobs()) {
    it(`are taken, at submission and by the handler: ${name}`, () => {
      assert.equal(type, 'ml')
      assert.deepEqual(schema.safeParse(payload).error, undefined)
      assert.deepEqual(atSubmission.safeParse(payload).error, undefined)
    })
  }
})
