import type { Kinds } from './submission-kinds.ts'

/** Of jobs that look alike a few speak for all: as many of a kind, and of a statement, are learned from. */
const SAMPLES_OF_A_KIND = 8

/** In base64, in the order of the jobs, up to the last that has one. */
export const samplesOf = (jobs: Kinds['jobs']): string => {
  const taken = new Map<number, number>()
  const samples: (string | null)[] = []
  jobs.forEach(({ job, kind }, n) => {
    const sample = job.prediction?.sample ?? null
    const before = taken.get(kind) ?? 0
    if (sample === null || before === SAMPLES_OF_A_KIND) return
    taken.set(kind, before + 1)
    while (samples.length < n) samples.push(null)
    samples.push(sample)
  })
  return JSON.stringify(samples)
}
