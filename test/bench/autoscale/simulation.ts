/**
 * The closed loop: work comes, the leader takes its snapshot, the HPA looks at it and asks for pods, and they start late. What
 * is simulated is the world; the signal and the rules that follow it are those of the product (db/rules).
 */

import { type ExpectedLoad, type ScalingSettings, scalingSignal } from '../../../db/rules/autoscale.ts'
import { createRandom } from '../../../functions/prediction/lstm/random.ts'
import { createReplicaScaler, SCALING_BEHAVIOUR } from '../../../worker-runtime/autoscale/replicas.ts'
import { percentile } from '../report.ts'
import { type Cluster, createCluster, type RunningJob } from './cluster.ts'
import type { Workload } from './workloads.ts'

export const SETTINGS: ScalingSettings = {
  slots_per_worker: 10,
  drain_goal_seconds: 20,
  lead_seconds: 75,
  min_workers: 1,
  max_workers: 5,
}

const SNAPSHOT_SECONDS = 5
export const POD_START_SECONDS = 45
/** Full minutes besides the one that has begun, as in the leader's statement. */
const ARRIVAL_MINUTES = 1
/** The stand-in for the LSTM is right on average, and off by a fifth (ln) from one minute to the next. */
const FORECAST_ERROR = 0.2
const Z90 = 1.2816

/** What a policy sees, as the leader's snapshot has it, and the count that others go by. */
export type Seen = {
  settings: ScalingSettings
  load: ExpectedLoad
  forecastP90: number | null
  jobs: number
}

/** Workers that each of its metrics asks for. */
export type Policy = {
  name: string
  fixed?: number
  settings?: Partial<ScalingSettings>
  needed: (seen: Seen) => number[]
}

export type Outcome = {
  workload: string
  policy: string
  jobs: number
  wait_p50_s: number
  wait_p95_s: number
  wait_max_s: number
  pod_hours: number
}

export const simulate = (workload: Workload, policy: Policy, seed = 1): Outcome => {
  const settings = { ...SETTINGS, ...policy.settings }
  const { min_workers: min, max_workers: max } = settings
  const cluster = createCluster({
    jobs: workload.jobs,
    pods: policy.fixed ?? min,
    slotsPerPod: settings.slots_per_worker,
    podStartSeconds: POD_START_SECONDS,
  })
  const scaler = createReplicaScaler({ min, max })
  const watch = createWatch(workload, settings, createRandom(seed))
  let seen = watch(cluster, 0)
  for (let now = 0; now < workload.seconds; now += SNAPSHOT_SECONDS) {
    cluster.runTo(now)
    seen = watch(cluster, now)
    if (policy.fixed !== undefined || now % SCALING_BEHAVIOUR.syncSeconds !== 0) continue
    const look = { nowSeconds: now, current: cluster.size(), needed: policy.needed(seen) }
    cluster.resize(scaler.next(look))
  }
  cluster.runTo(workload.seconds)
  return {
    workload: workload.name,
    policy: policy.name,
    jobs: cluster.waits.length,
    wait_p50_s: percentile(cluster.waits, 0.5),
    wait_p95_s: percentile(cluster.waits, 0.95),
    wait_max_s: percentile(cluster.waits, 1),
    pod_hours: cluster.podSeconds() / 3_600,
  }
}

const NOTHING = { jobs: 0, work: 0 }

/** Looks at the cluster as the leader does. Time must not go back. */
const createWatch = ({ jobs, expected }: Workload, settings: ScalingSettings, random: () => number) => {
  const { lead_seconds: leadSeconds, drain_goal_seconds: drainGoalSeconds } = settings
  const minutes = new Map<number, { jobs: number; work: number }>()
  let arrived = 0
  let errorOf = -1
  let error = 1

  const countArrivals = (now: number): void => {
    for (let job = jobs[arrived]; job && job.arrivesAt < now; job = jobs[++arrived]) {
      if (job.announced) continue
      const minute = Math.floor(job.arrivesAt / 60)
      const known = minutes.get(minute) ?? NOTHING
      minutes.set(minute, { jobs: known.jobs + 1, work: known.work + job.predicted })
    }
  }

  /** The minute that has begun counts as far as it has come. */
  const arriving = (now: number): number => {
    const minute = Math.floor(now / 60)
    let work = 0
    for (let n = 0; n <= ARRIVAL_MINUTES; n++) {
      const { jobs, work: all } = minutes.get(minute - n) ?? NOTHING
      work += Math.min(all, jobs * drainGoalSeconds)
    }
    return work / (now - minute * 60 + ARRIVAL_MINUTES * 60)
  }

  const scheduled = (until: number): number => {
    let work = 0
    for (let n = arrived; (jobs[n]?.arrivesAt ?? until) < until; n++) {
      const job = jobs[n]
      if (job?.announced) work += Math.min(job.predicted, drainGoalSeconds)
    }
    return work
  }

  /** One forecast a minute, as the leader makes them. */
  const forecastUntil = (now: number, until: number): number | null => {
    const minute = Math.floor(now / 60)
    if (minute !== errorOf) error = Math.exp(FORECAST_ERROR * normal(random))
    errorOf = minute
    return expected && expected(now, until) * error * (drainGoalSeconds / leadSeconds)
  }

  return (cluster: Cluster, now: number): Seen => {
    countArrivals(now)
    const until = now + leadSeconds
    const forecast = forecastUntil(now, until)
    const queued = cluster.queued()
    const running = cluster.running()
    return {
      settings,
      load: {
        queued_seconds: queued.reduce((sum, { predicted }) => sum + Math.min(predicted, drainGoalSeconds), 0),
        running_seconds: running.reduce(
          (sum, one) => sum + Math.min(remaining(one, now), drainGoalSeconds),
          0,
        ),
        arriving_per_second: arriving(now),
        scheduled_seconds: scheduled(until),
        forecast_p50_seconds: forecast,
      },
      forecastP90: forecast === null ? null : forecast * Math.exp(FORECAST_ERROR * Z90),
      jobs: queued.length + running.length,
    }
  }
}

/** As `queue_snapshot` reckons it. */
const remaining = ({ job, startedAt }: RunningJob, now: number): number => {
  const ran = now - startedAt
  return Math.max(job.predicted - ran, ran * (Math.sqrt(job.predictedP90 / job.predicted) - 1), 0.001)
}

const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

const askedBy = ({ settings, load }: Seen, other: Partial<ExpectedLoad> = {}): number[] => {
  const { B, R, F } = scalingSignal({ ...load, ...other, ...settings }).needed
  return [B, R, F]
}

export const PREDICTED_WORK: Policy = { name: 'B+R+F', needed: (seen) => askedBy(seen) }
export const PATIENT: Policy = {
  ...PREDICTED_WORK,
  name: 'B+R+F, drain goal 60 s',
  settings: { drain_goal_seconds: 60 },
}
export const BY_P90: Policy = {
  name: 'B+R+F by p90',
  needed: (seen) => askedBy(seen, { forecast_p50_seconds: seen.forecastP90 }),
}
export const WITHOUT_FORECAST: Policy = {
  name: 'B+R+F, no forecast',
  needed: (seen) => askedBy(seen, { forecast_p50_seconds: null }),
}
export const REACTIVE: Policy = {
  name: 'B+R',
  needed: (seen) => askedBy(seen, { forecast_p50_seconds: null, scheduled_seconds: 0 }),
}
export const STATIC: Policy = {
  name: `always ${SETTINGS.max_workers}`,
  fixed: SETTINGS.max_workers,
  needed: () => [],
}

/** What KEDA's scalers of queues do: so many jobs, queued and in flight, for each pod. */
export const byCount = (perPod: number): Policy => ({
  name: `${perPod} jobs a pod`,
  needed: ({ jobs }) => [jobs / perPod],
})
