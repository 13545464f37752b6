import type { TestContext } from 'node:test'
import type { z } from 'zod'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { createGuardedFetch } from '../../worker-runtime/egress/guarded-fetch.ts'
import type { JobContext } from '../../worker-runtime/handler-api.ts'
import type { MlResult } from '../../worker-runtime/handlers/ml/result.ts'
import { run } from '../../worker-runtime/handlers/ml/run.ts'
import { schema } from '../../worker-runtime/handlers/ml/schema.ts'

export type MlInput = z.input<typeof schema>

/** What an attempt has said and kept. */
export type Told = { log: string[]; notes: string[]; fractions: number[]; checkpoints: unknown[] }

/** One attempt of an ml job, the way the executor makes it. It may reach servers on this machine, but no database. */
export const runMl = async (
  payload: MlInput,
  overrides: Partial<JobContext> = {},
  told: Told = { log: [], notes: [], fractions: [], checkpoints: [] },
): Promise<MlResult & { told: Told }> => {
  const guard = createGuardedFetch({ allow: parseAllowList('127.0.0.1') })
  const say = (line: string) => void told.log.push(line)
  const ctx: JobContext = {
    jobId: 'job',
    orgId: 'org',
    attempt: 1,
    fencingToken: '1',
    signal: new AbortController().signal,
    log: { debug: say, info: say, warn: say, error: say },
    progress: (fraction, note) => {
      told.fractions.push(fraction)
      told.notes.push(note ?? '')
    },
    lastCheckpoint: null,
    checkpoint: async (state) => void told.checkpoints.push(JSON.parse(JSON.stringify(state))),
    fetch: guard.fetch,
    postgres: () => Promise.reject(new Error('There is no database')),
    ...overrides,
  }
  try {
    return { ...(await run(schema.parse(payload), ctx)), told }
  } finally {
    await guard.close()
  }
}

export const inline = (values: readonly (number | null)[]): MlInput['series'] => ({
  from: 'inline',
  values: [...values],
})

/** Every look at the clock is `ms` after the last: work between two of them takes as long. */
export const slowDown = (t: TestContext, ms: number): void => {
  let now = 0
  t.mock.method(performance, 'now', () => {
    now += ms
    return now
  })
}

type Noise = () => number

/** `count` values; `valueAt` gets the index, normal noise, and the values before. */
export const makeSeries = (
  count: number,
  valueAt: (t: number, noise: Noise, before: readonly number[]) => number,
  seed = 1,
): number[] => {
  const random = createRandom(seed)
  const noise = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const values: number[] = []
  for (let t = 0; t < count; t++) values.push(valueAt(t, noise, values))
  return values
}

export const noisySeason = (count: number, seed?: number): number[] =>
  makeSeries(count, (t, noise) => 100 + 20 * Math.sin((2 * Math.PI * t) / 12) + 5 * noise(), seed)

export const randomWalk = (count: number, seed?: number): number[] =>
  makeSeries(count, (t, noise, before) => (before[t - 1] ?? 100) + noise(), seed)
