import { type ProgressReport, saveProgress } from '../db/queries/progress.ts'
import type { Run } from '../db/query.ts'
import type { LeaseKey } from '../db/queue/exchange.ts'
import { safely, textOf } from './describe-error.ts'
import { toStorableJson } from './storable-json.ts'

export type ProgressWriter = {
  report(lease: LeaseKey, fraction: number, note?: string): void
  /** Resolves once it is stored. */
  checkpoint(lease: LeaseKey, state: unknown): Promise<void>
  flush(): Promise<void>
}

const FLUSH_MS = 250
const MAX_NOTE_CHARACTERS = 200

/** Collects what handlers report and stores the newest of each job, a few times a second; checkpoints at once. */
export const createProgressWriter = (options: {
  run: Run
  onError: (error: Error) => void
}): ProgressWriter => {
  let reports = new Map<string, ProgressReport>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (reports.size === 0) return
    const batch = [...reports.values()]
    reports = new Map()
    await options.run(saveProgress(toStorableJson(batch)))
  }

  const flush = (): Promise<void> => {
    writing = writing.catch(() => {}).then(write)
    return writing
  }

  const flushSoon = (): void => {
    timer ??= setTimeout(() => flush().catch(options.onError), FLUSH_MS)
  }

  const merge = ({ job_id, token }: LeaseKey, change: Partial<ProgressReport>): void => {
    const before = reports.get(job_id)
    const kept =
      before?.token === token
        ? before
        : { progress: null, note: null, checkpoint: null, has_checkpoint: false }
    reports.set(job_id, { ...kept, ...change, job_id, token })
  }

  return {
    flush,
    report: (lease, fraction, note) => {
      const progress = Math.min(Math.max(safely(() => Number(fraction), 0) || 0, 0), 1)
      merge(lease, { progress, note: note === undefined ? null : textOf(note).slice(0, MAX_NOTE_CHARACTERS) })
      flushSoon()
    },
    checkpoint: (lease, state) => {
      merge(lease, { checkpoint: state, has_checkpoint: true })
      return flush()
    },
  }
}
