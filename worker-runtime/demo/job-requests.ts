import type { Kind } from './kinds.ts'

/** The body of `POST /jobs`. */
export type JobRequest = {
  name: string
  type: string
  payload: Record<string, unknown>
  tags: readonly string[]
  ref?: string
  depends_on?: readonly string[]
  [field: string]: unknown
}

export type Making = { targetUrl: string; random: () => number; now: () => number }

/** Every job of the demo has it: to be found, and to be cancelled when the demo ends. */
export const DEMO_TAG = 'demo'

/** A job of a kind, as its tenant would submit it. */
export const makeRequest = (kind: Kind, making: Making): JobRequest => ({
  name: kind.name,
  type: kind.type,
  payload: payloadOf(kind, making),
  tags: [...kind.tags, DEMO_TAG],
  ...(kind.priority && { priority: kind.priority }),
  ...(kind.timeoutSeconds && { timeout_seconds: kind.timeoutSeconds }),
  ...(kind.retry && { retry: kind.retry }),
  ...(kind.deadlineSeconds && { deadline: inSeconds(making.now(), kind.deadlineSeconds) }),
})

export const inSeconds = (nowMs: number, seconds: number): string =>
  new Date(nowMs + seconds * 1000).toISOString()

const payloadOf = (kind: Kind, making: Making): Record<string, unknown> => {
  const size = kind.size ? drawSize(kind.size, making.random) : 0
  switch (kind.type) {
    case 'http':
      return callTarget(kind.name, size, making)
    case 'etl':
      return kind.size ? cleanOrders(size, making.random) : importFeed(kind.name, making)
    case 'ml':
      return trainForecast(size, making.random)
  }
}

/** Small ones are more frequent: as many between 2 and 4 as between 20 and 40. */
const drawSize = ([from, to]: readonly [number, number], random: () => number): number =>
  Math.round(from * (to / from) ** random())

const callTarget = (name: string, kb: number, { targetUrl, random }: Making): Record<string, unknown> => ({
  url: `${targetUrl}/${name}`,
  method: 'POST',
  body: {
    reference: `${name}-${Math.floor(random() * 1e9)}`,
    ...(kb > 0 && { data: 'x'.repeat(kb * 1024) }),
  },
})

const COUNTRIES = ['DE', 'FR', 'US', 'JP', 'BR', 'IN']

const cleanOrders = (rows: number, random: () => number): Record<string, unknown> => ({
  extract: {
    from: 'inline',
    rows: Array.from({ length: rows }, (_, n) => ({
      id: n + 1,
      country: COUNTRIES[Math.floor(random() * COUNTRIES.length)],
      status: random() < 0.8 ? 'paid' : 'open',
      amount: Math.round(random() * 50_000) / 100,
    })),
  },
  transform: [
    { filter: { path: '$.status', eq: 'paid' } },
    {
      group: { by: ['country'], aggregate: { revenue: { sum: '$.amount' }, orders: { count: true } } },
    },
    { sort: [{ by: '$.revenue', order: 'desc' }] },
  ],
  load: { to: 'result' },
})

const importFeed = (name: string, { targetUrl }: Making): Record<string, unknown> => ({
  extract: { from: 'http', url: `${targetUrl}/${name}`, format: 'ndjson' },
  transform: [
    { filter: { path: '$.published', eq: true } },
    { group: { by: ['section'], aggregate: { stories: { count: true } } } },
  ],
  load: { to: 'result' },
})

/** Orders a day: weeks, a trend, and some noise. */
const trainForecast = (days: number, random: () => number): Record<string, unknown> => ({
  series: {
    from: 'inline',
    values: Array.from({ length: days }, (_, day) =>
      Math.round(120 + 0.2 * day + 35 * Math.sin((2 * Math.PI * day) / 7) + 20 * random()),
    ),
  },
  horizon: 7,
  season: 7,
  epochs: 10,
  hidden: 8,
})
