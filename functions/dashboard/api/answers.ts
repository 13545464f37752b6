/** What the API answers, by the schemas that it answers with: the dashboard cannot drift away from it. */

import type { z } from '@hono/zod-openapi'
import type {
  accuracy,
  leaderHistory,
  queueDepth,
  schedulingGain,
  summary,
  throughput,
} from '../../analytics/schemas.ts'
import type {
  account,
  apiKey,
  createdApiKey,
  passwordChanged,
  registrationPolicy,
  signInSession,
} from '../../auth/schemas.ts'
import type { endpoint, jobCallback, secret } from '../../callbacks/schemas.ts'
import type { deadLetters, replayed } from '../../dead-letters/schemas.ts'
import type { closedAccount, closedOrg, ownAccount } from '../../deletion/schemas.ts'
import type { explanation } from '../../jobs/explanation.ts'
import type { graph } from '../../jobs/job-graph.ts'
import type { newJob } from '../../jobs/new-job.ts'
import type { jobType, leader, worker } from '../../jobs/registry-view.ts'
import type { attempt, job, jobSummary, logLine, sweep } from '../../jobs/schemas.ts'
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
export type SignIn = z.output<typeof signInSession>
export type PasswordChanged = z.output<typeof passwordChanged>
export type RegistrationPolicy = z.output<typeof registrationPolicy>
export type OwnAccount = z.output<typeof ownAccount>
export type ClosedAccount = z.output<typeof closedAccount>
export type ClosedOrg = z.output<typeof closedOrg>
export type ModelCard = z.output<typeof modelCard>
export type ModelVersion = ModelCard['versions'][number]
export type Page<Item> = { items: Item[]; next_cursor: string | null }

export type Worker = z.output<typeof worker>
export type Leader = z.output<typeof leader>
export type LeaderHistory = z.output<typeof leaderHistory>
export type Summary = z.output<typeof summary>
export type Throughput = z.output<typeof throughput>
export type QueueDepth = z.output<typeof queueDepth>
export type PredictionAccuracy = z.output<typeof accuracy>
export type SchedulingGain = z.output<typeof schedulingGain>
