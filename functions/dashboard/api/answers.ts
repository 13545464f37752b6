/** What the API answers, by the schemas that it answers with: the dashboard cannot drift away from it. */

import type { z } from '@hono/zod-openapi'
import type { account, apiKey, createdApiKey } from '../../auth/schemas.ts'
import type { endpoint, jobCallback, secret } from '../../callbacks/schemas.ts'
import type { deadLetters, replayed } from '../../dead-letters/schemas.ts'
import type { sweep } from '../../jobs/bulk-routes.ts'
import type { explanation } from '../../jobs/explain-routes.ts'
import type { graph } from '../../jobs/graph-routes.ts'
import type { newJob } from '../../jobs/new-job.ts'
import type { jobType } from '../../jobs/registry-routes.ts'
import type { attempt, job, jobSummary, logLine } from '../../jobs/schemas.ts'
import type {
  activeOrg,
  auditEntry,
  createdInvitation,
  invitation,
  member,
  org,
  ownInvitation,
  quotas,
} from '../../orgs/schemas.ts'
import type { forecast } from '../../prediction/forecast.ts'
import type { modelCard } from '../../prediction/model-card.ts'
import type { queue } from '../../queue/schemas.ts'
import type { schedule, tick } from '../../schedules/schemas.ts'
import type {
  createdSource,
  delivery,
  deliverySummary,
  replayResult,
  savedSource,
  source,
} from '../../webhooks/schemas.ts'

export type Job = z.output<typeof job>
export type JobSummary = z.output<typeof jobSummary>
export type LogLine = z.output<typeof logLine>
export type Attempt = z.output<typeof attempt>
export type NewJob = z.input<typeof newJob>
export type JobType = z.output<typeof jobType>
export type Forecast = z.output<typeof forecast>
export type Sweep = z.output<typeof sweep>
export type JobCallback = z.output<typeof jobCallback>
export type Explanation = z.output<typeof explanation>
export type JobGraph = z.output<typeof graph>
export type DeadLetters = z.output<typeof deadLetters>
export type Replayed = z.output<typeof replayed>
export type Org = z.output<typeof org>
export type ActiveOrg = z.output<typeof activeOrg>
export type Member = z.output<typeof member>
export type Invitation = z.output<typeof invitation>
export type CreatedInvitation = z.output<typeof createdInvitation>
export type OwnInvitation = z.output<typeof ownInvitation>
export type Quotas = z.output<typeof quotas>
export type AuditEntry = z.output<typeof auditEntry>
export type Schedule = z.output<typeof schedule>
export type Tick = z.output<typeof tick>
export type Source = z.output<typeof source>
export type SavedSource = z.output<typeof savedSource>
export type CreatedSource = z.output<typeof createdSource>
export type DeliverySummary = z.output<typeof deliverySummary>
export type Delivery = z.output<typeof delivery>
export type Replay = z.output<typeof replayResult>
export type CallbackEndpoint = z.output<typeof endpoint>
export type CallbackSecret = z.output<typeof secret>
export type Queue = z.output<typeof queue>
export type ApiKey = z.output<typeof apiKey>
export type CreatedApiKey = z.output<typeof createdApiKey>
export type Account = z.output<typeof account>
export type ModelCard = z.output<typeof modelCard>
export type ModelVersion = ModelCard['versions'][number]
export type Page<Item> = { items: Item[]; next_cursor: string | null }

type Finished = {
  submitted: number
  completed: number
  failed: number
  cancelled: number
  success_rate: number | null
  wait_p50_ms: number | null
  wait_p90_ms: number | null
  runtime_mean_ms: number | null
}

/** Analytics: replaced by the schemas' own types once they are here. */
export type Summary = {
  at: string
  depth: { pending: number; blocked: number; ready: number; running: number; retrying: number }
  oldest_ready_seconds: number | null
  last_hour: Finished
  last_24h: Finished
  throughput_per_minute: number
  submitted_per_minute: number
  backlog: { predicted_seconds: number; slots: number; drain_seconds: number | null }
  workers: { online: number; draining: number; slots: number; running: number }
  forecast: { in_seconds: number; depth: number | null; work_seconds: number | null }
  paused: boolean
}

export type Worker = {
  worker_id: string
  hostname: string
  status: 'online' | 'draining' | 'offline'
  last_seen: string
  started_at: string
  jobs_processed: number
  running: number
  slots: number
  cpu_units: number
  memory_mb: number
  types: string[]
}

export type LeaderHistory = Leader & {
  alive: boolean
  elections: { term: number; worker_id: string; elected_at: string }[]
}

export type Leader = { worker_id: string; term: number; elected_at: string; last_seen: string }

export type Throughput = {
  range: string
  bucket_seconds: number
  items: {
    at: string
    submitted: number
    completed: number
    failed: number
    cancelled: number
    runtime_mean_ms: number | null
    wait_mean_ms: number | null
  }[]
}

export type QueueDepth = {
  range: string
  bucket_seconds: number
  items: {
    at: string
    pending: number
    blocked: number
    ready: number
    running: number
    retrying: number
    predicted_seconds: number
  }[]
  forecast: { at: string; depth: number; depth_p90: number; predicted_seconds: number }[]
}

export type SchedulingGain = {
  range: string
  jobs: number
  mean_wait_ms: number | null
  fifo_mean_wait_ms: number | null
  gain: number | null
  max_wait_ms: number | null
  fifo_max_wait_ms: number | null
  points: { at: string; jobs: number; mean_wait_ms: number; fifo_mean_wait_ms: number }[]
  method: string
}

export type PredictionAccuracy = {
  range: string
  bucket_seconds: number
  points: {
    at: string
    jobs: number
    mean_abs_log_error: number
    baseline_mean_abs_log_error: number | null
    within_p90: number
    bias_log: number
  }[]
  overall: {
    jobs: number
    mean_abs_log_error: number | null
    median_ape: number | null
    within_p50: number | null
    within_p90: number | null
  }
  calibration: { predicted: number; actual: number | null }[]
  samples: {
    job_id: string
    name: string
    type: string
    predicted_ms: number
    predicted_p90_ms: number
    actual_ms: number
    at: string
    source: string
  }[]
}
