import { arrayOf } from '../array-literal.ts'
import { rankTerms } from '../rules/priority.ts'
import { areAlike, KIND_FIELDS, type NewJob, PREDICTION_FIELDS } from './job-fields.ts'

/** Alike jobs of one member form a kind. Returns all kinds as JSON, and the number of each job's kind. */
export const toKinds = (jobs: readonly { job: NewJob; member: number }[]) => {
  const numbers = new Map<string, number>()
  const kinds: { fields: string; jobs: number[] }[] = []
  // Most jobs are like the one before, which is checked without serialising them.
  let last: { job: NewJob; member: number; number: number } | undefined

  const lookUp = (job: NewJob, member: number): number => {
    const fields = JSON.stringify({ member, ...kindOf(job) })
    const known = numbers.get(fields)
    if (known !== undefined) return known
    const number = kinds.push({ fields, jobs: [] })
    numbers.set(fields, number)
    return number
  }

  const jobKinds = jobs.map(({ job, member }, n) => {
    if (last?.member !== member || !areAlike(last.job, job)) {
      last = { job, member, number: lookUp(job, member) }
    }
    kinds[last.number - 1]?.jobs.push(n + 1)
    return last.number
  })
  const texts = kinds.map(
    ({ fields, jobs }, n) => `{"number":${n + 1},"jobs":"${arrayOf(jobs)}",${fields.slice(1)}`,
  )
  return { kinds: `[${texts.join(',')}]`, jobKinds }
}

const kindOf = (job: NewJob): object => {
  const kind: Record<string, unknown> = {}
  for (const name of KIND_FIELDS) if (name !== 'prediction') kind[name] = job[name]
  return job.prediction ? { ...kind, ...predictionOf(job) } : kind
}

/** `unpredicted`: the rank terms of the job if Postgres rejects the prediction. */
const predictionOf = ({ prediction, priority, timeout_seconds }: NewJob): object => {
  const fields: Record<string, unknown> = { unpredicted: rankTerms(priority, timeout_seconds) }
  for (const [name, sentAs] of Object.entries(PREDICTION_FIELDS)) {
    fields[sentAs] = prediction?.[name as keyof typeof PREDICTION_FIELDS]
  }
  return fields
}

/** A few samples of alike jobs are enough to learn from. */
const SAMPLES_OF_A_KIND = 8

/** A JSON array of base64 samples in the order of the jobs, up to the last job that has one. Null if none has. */
export const samplesOf = (jobs: readonly NewJob[], jobKinds: readonly number[]): string | null => {
  const taken = new Map<number, number>()
  const samples: (string | null)[] = []
  jobs.forEach(({ prediction }, n) => {
    const kind = jobKinds[n] ?? 0
    const before = taken.get(kind) ?? 0
    if (!prediction?.sample || before === SAMPLES_OF_A_KIND) return
    taken.set(kind, before + 1)
    while (samples.length < n) samples.push(null)
    samples.push(prediction.sample)
  })
  return samples.length > 0 ? JSON.stringify(samples) : null
}
