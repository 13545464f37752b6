/**
 * Jobs that come over some hours, made from a seed: by chance around a rate that changes, of three kinds whose runtimes differ
 * by two orders of magnitude. A prediction is the median of a job's kind, as good as a series' own history makes it.
 */
import { createRandom } from '../../../functions/prediction/lstm/random.ts'

export type SimulatedJob = {
  /** Seconds from the beginning. */
  arrivesAt: number
  runtime: number
  predicted: number
  predictedP90: number
  /** Its time was known long before: it was submitted with `run_at`, or a schedule submits it. */
  announced: boolean
}

export type Workload = {
  name: string
  says: string
  seconds: number
  jobs: SimulatedJob[]
  /** Predicted work of unannounced jobs that is to be expected from one moment to another. Null: nobody could know. */
  expected: ((from: number, to: number) => number) | null
}

/** Share of the jobs, median and spread of ln(runtime). On average 5.9 s a job, 5.0 s predicted. */
const KINDS = [
  { share: 0.7, median: 0.8, spread: 0.5 },
  { share: 0.25, median: 6, spread: 0.6 },
  { share: 0.05, median: 60, spread: 0.5 },
] as const
const PREDICTED_SECONDS = KINDS.reduce((sum, { share, median }) => sum + share * median, 0)

const Z90 = 1.2816
const HOUR = 3_600
/** Jobs a second that keep half a worker busy. */
const BASE = 0.7

type Kind = { median: number; spread: number }
type Rate = (seconds: number) => number

export const createWorkloads = (seed: number): Workload[] => [
  make('steady', 'two jobs a second', 2 * HOUR, () => 2, seed),
  make(
    'hourly burst',
    'seven times the jobs for five minutes of each hour',
    4 * HOUR,
    (at) => ((at + HOUR / 2) % HOUR < 300 ? 7 * BASE : BASE),
    seed + 1,
  ),
  withBursts(
    make('scheduled burst', '300 jobs with the same run_at, twice an hour', 4 * HOUR, () => BASE, seed + 2),
    { jobs: 300, announced: true },
    seed + 3,
  ),
  make(
    'ramp',
    'from half a job a second to five within an hour, and back',
    2 * HOUR,
    (at) => 0.5 + 4.5 * (1 - Math.abs(at / HOUR - 1)),
    seed + 4,
  ),
  unforeseen(
    make(
      'flash crowd',
      'seven times the jobs for five minutes that nobody could know of',
      2 * HOUR,
      (at) => (at >= 2_500 && at < 2_800 ? 7 * BASE : BASE),
      seed + 5,
    ),
  ),
  unforeseen(
    withBursts(
      make(
        'many tiny jobs',
        '1,000 jobs of a tenth of a second at once, twice an hour',
        2 * HOUR,
        () => BASE,
        seed + 6,
      ),
      { jobs: 1_000, announced: false, of: { median: 0.1, spread: 0.3 } },
      seed + 7,
    ),
  ),
  unforeseen(
    withBursts(
      make(
        'few long jobs',
        'four jobs of ten minutes at once, twice an hour',
        2 * HOUR,
        () => BASE / 2,
        seed + 8,
      ),
      { jobs: 4, announced: false, of: { median: 600, spread: 0.3 } },
      seed + 9,
    ),
    BASE / 2,
  ),
]

const make = (name: string, says: string, seconds: number, rate: Rate, seed: number): Workload => {
  const random = createRandom(seed)
  const jobs: SimulatedJob[] = []
  const most = mostOf(rate, seconds)
  for (let at = gap(random, most); at < seconds; at += gap(random, most)) {
    if (random() < rate(at) / most) jobs.push(makeJob(random, at, false))
  }
  return { name, says, seconds, jobs, expected: (from, to) => PREDICTED_SECONDS * integrate(rate, from, to) }
}

/** Twice an hour. `of` undefined: jobs of all kinds. */
const withBursts = (
  workload: Workload,
  bursts: { jobs: number; announced: boolean; of?: Kind },
  seed: number,
): Workload => {
  const random = createRandom(seed)
  const more: SimulatedJob[] = []
  for (let at = HOUR / 4; at < workload.seconds; at += HOUR / 2) {
    for (let n = 0; n < bursts.jobs; n++) more.push(makeJob(random, at, bursts.announced, bursts.of))
  }
  const jobs = [...workload.jobs, ...more].sort((a, b) => a.arrivesAt - b.arrivesAt)
  return { ...workload, jobs }
}

/** What is forecast is what always was. */
const unforeseen = (workload: Workload, rate = BASE): Workload => ({
  ...workload,
  expected: (from, to) => PREDICTED_SECONDS * rate * (to - from),
})

const makeJob = (
  random: () => number,
  arrivesAt: number,
  announced: boolean,
  kind: Kind = kindOf(random()),
): SimulatedJob => {
  const { median, spread } = kind
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return {
    arrivesAt,
    runtime: median * Math.exp(spread * normal),
    predicted: median,
    predictedP90: median * Math.exp(spread * Z90),
    announced,
  }
}

const kindOf = (part: number): Kind =>
  part < KINDS[0].share ? KINDS[0] : part < KINDS[0].share + KINDS[1].share ? KINDS[1] : KINDS[2]

const gap = (random: () => number, rate: number): number => -Math.log(1 - random()) / rate

const mostOf = (rate: Rate, seconds: number): number => {
  let most = 0
  for (let at = 0; at < seconds; at += 10) most = Math.max(most, rate(at))
  return most
}

const integrate = (rate: Rate, from: number, to: number): number => {
  const steps = Math.max(1, Math.ceil((to - from) / 5))
  const step = (to - from) / steps
  let sum = 0
  for (let n = 0; n < steps; n++) sum += rate(from + (n + 0.5) * step) * step
  return sum
}
