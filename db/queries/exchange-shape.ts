/** What an exchange needs; everything else is left out of its text. */
export type ExchangeShape = {
  order: 'rank' | 'age'
  /** By rank, and by the newest estimates: see `exchange-rerank.ts`. */
  reranked: boolean
  sized: boolean
  /** Something is paused, or has a limit of running jobs. */
  restricted: boolean
  /** The worker wants to know how often traced jobs were executed before. */
  traced: boolean
  /** Some handler returned something. */
  results: boolean
  /**
   * `completed`: every attempt has completed, and nothing else has happened to the jobs of their leases. `checked`: each
   * of them is looked for in its lease, because some ended otherwise, or jobs that were claimed ahead have been started.
   */
  ends: 'none' | 'completed' | 'checked'
}

/** Every value that a shape may ask for, with its type. */
export const PARAMETERS = {
  worker_id: 'text',
  lease_seconds: 'integer',
  job_ids: 'uuid[]',
  tokens: 'bigint[]',
  lease_jobs: 'integer',
  stretch_orgs: 'uuid[]',
  stretch_series: 'bigint[]',
  stretch_announced: 'boolean[]',
  stretch_firsts: 'integer[]',
  stretch_lasts: 'integer[]',
  common_attempts: 'integer[]',
  orgs: 'uuid[]',
  org_numbers: 'integer[]',
  series_ids: 'bigint[]',
  attempts: 'integer[]',
  ran_ms: 'double precision[]',
  announced: 'boolean[]',
  results: 'jsonb[]',
  states: 'smartqueue.job_state[]',
  errors: 'jsonb[]',
  delays_ms: 'double precision[]',
  sample_series: 'bigint[]',
  sample_runs: 'double precision[]',
  sample_means: 'double precision[]',
  sample_spreads: 'double precision[]',
  timeout_series: 'bigint[]',
  timeout_logs: 'double precision[]',
  closed: 'bigint[]',
  started_ids: 'uuid[]',
  started_tokens: 'bigint[]',
  started_ms: 'double precision[]',
  claim_limit: 'integer',
  starts: 'boolean',
  types: 'text[]',
  from_lanes: 'smallint[]',
  from_keys: 'bigint[]',
  to_lanes: 'smallint[]',
  to_keys: 'bigint[]',
  age_from_key: 'bigint',
  free_cpu_units: 'double precision',
  free_memory_mb: 'double precision',
  ahead: 'integer',
} as const

export type ExchangeParameter = keyof typeof PARAMETERS
