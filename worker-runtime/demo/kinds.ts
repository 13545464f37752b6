import type { Runtime } from './runtimes.ts'

/** Each is the user of an organisation that is called the same: who signs in as one sees its jobs at once. */
export const TENANTS = ['Northwind-Analytics', 'Acme-Payments', 'Zephyr-Media'] as const
export type TenantName = (typeof TENANTS)[number]

/** What comes again and again: a series of a tenant. */
export type Kind = {
  tenant: TenantName
  name: string
  type: 'http' | 'etl' | 'ml'
  /** How many of a hundred jobs, about. */
  weight: number
  runtime: Runtime
  tags: readonly string[]
  priority?: 'critical' | 'high' | 'low'
  /** KB of the body, rows, or values of the series: small ones are more frequent. */
  size?: readonly [from: number, to: number]
  deadlineSeconds?: number
  timeoutSeconds?: number
  retry?: { max_attempts: number; initial_delay_seconds: number; backoff_multiplier?: number }
  /** A share of the requests that the server does not take. */
  fails?: { share: number; status: number; message: string; retryAfterSeconds?: number }
}

const ONCE = { max_attempts: 1, initial_delay_seconds: 0 }

/** Together some 165 ms a job, so that 36 a second keep six of ten slots busy. */
export const KINDS: readonly Kind[] = [
  {
    tenant: 'Northwind-Analytics',
    name: 'nightly-report',
    type: 'http',
    weight: 9,
    runtime: { shape: 'bimodal', hitMs: 90, missMs: 600, missShare: 0.25 },
    tags: ['reports'],
  },
  {
    tenant: 'Northwind-Analytics',
    name: 'sync-warehouse',
    type: 'http',
    weight: 12,
    runtime: { shape: 'periodic', idleMs: 50, busyMs: 300, periodSeconds: 40 },
    tags: ['warehouse'],
  },
  {
    tenant: 'Northwind-Analytics',
    name: 'clean-orders',
    type: 'etl',
    weight: 3,
    runtime: { shape: 'computed' },
    tags: ['orders'],
    size: [300, 1_800],
  },
  {
    tenant: 'Northwind-Analytics',
    name: 'train-forecast',
    type: 'ml',
    weight: 0.3,
    runtime: { shape: 'computed' },
    tags: ['forecast'],
    priority: 'low',
    size: [84, 300],
  },
  {
    tenant: 'Acme-Payments',
    name: 'charge-card',
    type: 'http',
    weight: 16,
    runtime: { shape: 'steady', ms: 80 },
    tags: ['payments', 'card'],
    priority: 'critical',
    deadlineSeconds: 10,
    retry: { max_attempts: 4, initial_delay_seconds: 0.2 },
    fails: { share: 0.03, status: 503, message: 'acquirer is busy', retryAfterSeconds: 1 },
  },
  {
    tenant: 'Acme-Payments',
    name: 'fraud-check',
    type: 'http',
    weight: 8,
    // The rules say it, or the model has to be asked.
    runtime: { shape: 'bimodal', hitMs: 50, missMs: 400, missShare: 0.3 },
    tags: ['payments', 'risk'],
    priority: 'high',
  },
  {
    tenant: 'Acme-Payments',
    name: 'settle-batch',
    type: 'http',
    weight: 13,
    runtime: { shape: 'size-dependent', baseMs: 40, msPerKb: 8 },
    tags: ['settlement'],
    size: [4, 60],
    deadlineSeconds: 30,
  },
  {
    tenant: 'Acme-Payments',
    name: 'sync-legacy-ledger',
    type: 'http',
    weight: 0.8,
    runtime: { shape: 'steady', ms: 60 },
    tags: ['ledger'],
    retry: { max_attempts: 2, initial_delay_seconds: 0.3 },
    fails: { share: 1, status: 500, message: 'ledger: too many connections' },
  },
  {
    tenant: 'Acme-Payments',
    name: 'verify-iban',
    type: 'http',
    weight: 0.4,
    runtime: { shape: 'steady', ms: 40 },
    tags: ['payments'],
    fails: { share: 1, status: 404, message: 'no such bank' },
  },
  {
    tenant: 'Zephyr-Media',
    name: 'resize-images',
    type: 'http',
    weight: 20,
    runtime: { shape: 'size-dependent', baseMs: 20, msPerKb: 8 },
    tags: ['images'],
    size: [2, 48],
  },
  {
    tenant: 'Zephyr-Media',
    name: 'warm-cdn',
    type: 'http',
    weight: 8,
    runtime: { shape: 'periodic', idleMs: 80, busyMs: 300, periodSeconds: 30 },
    tags: ['cdn'],
    priority: 'low',
  },
  {
    tenant: 'Zephyr-Media',
    name: 'transcode-clip',
    type: 'http',
    weight: 2,
    runtime: { shape: 'size-dependent', baseMs: 0, msPerKb: 18 },
    tags: ['video'],
    priority: 'low',
    size: [20, 120],
  },
  {
    tenant: 'Zephyr-Media',
    name: 'import-feed',
    type: 'etl',
    weight: 2,
    // It waits for the feed, which the server takes this long to send.
    runtime: { shape: 'steady', ms: 250 },
    tags: ['feeds'],
  },
  {
    tenant: 'Zephyr-Media',
    name: 'fetch-thumbnail',
    type: 'http',
    weight: 0.3,
    runtime: { shape: 'steady', ms: 5_000 },
    tags: ['images'],
    timeoutSeconds: 1,
    retry: ONCE,
  },
]

/** What does not come by chance but at a set time, or within a pipeline. */
export const RARE_KINDS = {
  /** It cannot be done in time, which is known once it has run. */
  'month-end-close': {
    tenant: 'Acme-Payments',
    name: 'month-end-close',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 1_500 },
    tags: ['ledger'],
    deadlineSeconds: 1,
  },
  /** Somebody thinks better of it while it runs. */
  'rebuild-search-index': {
    tenant: 'Zephyr-Media',
    name: 'rebuild-search-index',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 30_000 },
    tags: ['search'],
    priority: 'high',
    retry: ONCE,
  },
  'publish-forecast': {
    tenant: 'Northwind-Analytics',
    name: 'publish-forecast',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 60 },
    tags: ['forecast'],
    priority: 'high',
  },
  'package-episode': {
    tenant: 'Zephyr-Media',
    name: 'package-episode',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 300 },
    tags: ['video'],
  },
  'notify-subscribers': {
    tenant: 'Zephyr-Media',
    name: 'notify-subscribers',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 50 },
    tags: ['mail'],
  },
  'deploy-site': {
    tenant: 'Zephyr-Media',
    name: 'deploy-site',
    type: 'http',
    weight: 0,
    runtime: { shape: 'steady', ms: 400 },
    tags: ['deploy'],
    priority: 'high',
  },
} as const satisfies Record<string, Kind>

const ALL: readonly Kind[] = [...KINDS, ...Object.values(RARE_KINDS)]

export const kindOf = (name: string): Kind | undefined => ALL.find((kind) => kind.name === name)
