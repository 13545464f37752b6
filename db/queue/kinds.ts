import { arrayOf } from '../array-literal.ts'
import { rankTerms } from '../rules/priority.ts'
import { areAlike, KIND_FIELDS, type NewJob, predictedColumns } from './job-fields.ts'

/** Alike jobs of one member form a kind. Returns all kinds as JSON, and the number of each job's kind. */
export const toKinds = (jobs: readonly { job: NewJob; member: number }[]) => {
  const numbers = new Map<string, number>()
  const kinds: { fields: string; jobs: number[] }[] = []
  // Most jobs are like the one before, which is checked without serialising them.
  let last: { job: NewJob; member: number; number: number } | undefined

  const lookUp = (job: NewJob, member: number): number => {
    const fields = JSON.stringify({ member, ...columnsOf(job) })
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

/** The columns that the job has in common with others of its kind. */
export const columnsOf = (job: NewJob): object => {
  const columns: Record<string, unknown> = {}
  for (const name of KIND_FIELDS) if (name !== 'prediction') columns[name] = job[name]
  if (!job.prediction) return columns
  // The rank terms that the job gets if Postgres rejects the prediction.
  const unpredicted = rankTerms(job.priority, job.timeout_seconds)
  return { ...columns, ...predictedColumns(job.prediction), unpredicted }
}

/** A few samples of alike jobs are enough to learn from. */
const SAMPLES_OF_A_KIND = 8

/** A JSON array of base64 samples in the order of the jobs, up to the last job that has one. Null if none has. */
export const samplesOf = (jobs: readonly NewJob[], jobKinds: readonly number[]): string | null => {
  if (jobs.every(({ prediction }) => !prediction?.sample)) return null
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
  return JSON.stringify(samples)
}
