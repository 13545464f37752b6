/**
 * The shared encoder: job and series as the vector that the network sees. Runtimes are differences to the baseline, which is
 * what the network corrects; everything is scaled to about one, so that no input drowns another.
 */
import type { Kernels } from './kernels.ts'
import type { PastRun } from './series-memory.ts'
import type { Baseline, JobTraits, SeriesView } from './series-view.ts'

const NAMED_INPUTS = [
  'residual 1',
  'residual 2',
  'residual 3',
  'residual 4',
  'last two',
  'median',
  'spread',
  'executions',
  'is new',
  'type median',
  "organisation's type",
  'series drift',
  'payload size',
  'change of size',
  'timeout',
  'has timeout',
  'cpu',
  'change of cpu',
  'memory',
  'gap since last end',
  'gap since last submission',
  'hour sine',
  'hour cosine',
  'week sine',
  'week cosine',
  'queue depth',
  'by size',
  'by gap',
  'by hour',
  'by all',
  'alike',
  'support',
  'per size',
  'per timeout',
  "organisation's drift",
  'alike in organisation',
  'last of organisation',
] as const

/** Hashes tell types and names apart; a few bits of each are enough beside what is known of the series. */
const HASH_BITS = 8

export const INPUT_NAMES: readonly string[] = [
  ...NAMED_INPUTS,
  ...Array.from({ length: HASH_BITS }, (_, n) => `type bit ${n + 1}`),
  ...Array.from({ length: HASH_BITS }, (_, n) => `name bit ${n + 1}`),
]
export const INPUTS = INPUT_NAMES.length

/** Beyond this a difference of logarithms only says: far. */
const FAR = 4
const DAY_S = 86_400
const WEEK_S = 7 * DAY_S

export type Encoded = { x: Float32Array; kernels: Kernels | undefined; gapLog: number; hour: number }

export const gapLogOf = ({ lastSubmittedAtS }: SeriesView, job: JobTraits): number =>
  lastSubmittedAtS === undefined ? 0 : Math.log1p(Math.max(0, job.submittedAtS - lastSubmittedAtS))

export const hourOf = (atS: number): number => (atS % DAY_S) / 3600

export const encode = (
  view: SeriesView,
  job: JobTraits,
  baseline: Baseline,
  situation: {
    kernels: Kernels | undefined
    gapLog: number
    hour: number
    ofOrg: number | undefined
    median: number
    lastTwo: number
    typeMedian: number
  },
): Float32Array => {
  const { memory, orgType, estimate } = view
  const { runs } = memory
  const { kernels, gapLog, hour } = situation
  const base = baseline.log
  const apart = (log: number | undefined): number => (log === undefined ? 0 : clip(log - base, FAR) / 2)
  const last = runs.at(-1)
  const day = (2 * Math.PI * hour) / 24
  const week = (2 * Math.PI * (job.submittedAtS % WEEK_S)) / WEEK_S
  const values: Record<(typeof NAMED_INPUTS)[number], number> = {
    'residual 1': apart(logAt(runs, 1)),
    'residual 2': apart(logAt(runs, 2)),
    'residual 3': apart(logAt(runs, 3)),
    'residual 4': apart(logAt(runs, 4)),
    'last two': apart(situation.lastTwo),
    median: apart(situation.median),
    spread: Math.min(baseline.deviationLog, FAR) / 2,
    executions: Math.log1p(estimate?.runs ?? 0) / 5,
    'is new': estimate ? 0 : 1,
    'type median': apart(situation.typeMedian),
    "organisation's type": apart(orgType?.meanLog),
    'series drift': clip(view.driftLog, 2),
    'payload size': job.sizeLog / 12,
    'change of size': last ? clip(job.sizeLog - last.sizeLog, FAR) / 2 : 0,
    timeout: job.timeoutLog > 0 ? clip(job.timeoutLog - base, 6) / 3 : 0,
    'has timeout': job.timeoutLog > 0 ? 1 : 0,
    cpu: job.cpuLog / 6,
    'change of cpu': last ? clip(job.cpuLog - last.cpuLog, FAR) / 2 : 0,
    memory: job.memoryLog / 12,
    'gap since last end': last ? Math.log1p(Math.max(0, job.submittedAtS - memory.endedAtS)) / 10 : 0,
    'gap since last submission': gapLog / 10,
    'hour sine': Math.sin(day),
    'hour cosine': Math.cos(day),
    'week sine': Math.sin(week),
    'week cosine': Math.cos(week),
    'queue depth': job.depthLog / 10,
    'by size': apart(kernels?.bySize),
    'by gap': apart(kernels?.byGap),
    'by hour': apart(kernels?.byHour),
    'by all': apart(kernels?.byAll),
    alike: apart(kernels?.alike),
    support: Math.log1p(kernels?.support ?? 0) / 3,
    'per size': apart(kernels?.perSize),
    'per timeout': apart(kernels?.perTimeout),
    "organisation's drift": clip(orgType?.driftLog ?? 0, 2),
    'alike in organisation': apart(situation.ofOrg),
    'last of organisation': apart(orgType?.newest.at(-1)?.log),
  }
  const x = new Float32Array(INPUTS)
  NAMED_INPUTS.forEach((name, n) => {
    x[n] = values[name]
  })
  writeBits(x, NAMED_INPUTS.length, hashOf(job.type))
  writeBits(x, NAMED_INPUTS.length + HASH_BITS, hashOf(job.name))
  return x
}

const logAt = (runs: readonly PastRun[], back: number): number | undefined => runs.at(-back)?.log

const clip = (value: number, reach: number): number => Math.min(Math.max(value, -reach), reach)

/** FNV-1a. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let n = 0; n < text.length; n++) hash = Math.imul(hash ^ text.charCodeAt(n), 0x01000193)
  return hash ^ (hash >>> 15)
}

const writeBits = (x: Float32Array, from: number, hash: number): void => {
  for (let n = 0; n < HASH_BITS; n++) x[from + n] = (hash >>> n) & 1 ? 0.5 : -0.5
}
