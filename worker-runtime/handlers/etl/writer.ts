import { createHash } from 'node:crypto'
import { JobError } from '../../handler-api.ts'
import type { NumberedRow } from '../sources/row-batch.ts'
import type { Reject } from './bad-rows.ts'
import type { OutputBatch, Target } from './target.ts'

export type Writer = {
  /** Resolves when the batch before it is loaded: while the target is busy with one, the next is made. */
  write(records: readonly NumberedRow[]): Promise<void>
  /** Resolves when all are loaded. */
  end(): Promise<void>
}

/**
 * Loads each row once. An attempt after an interrupted one makes all rows again and passes over those that are loaded
 * already. That they are the same ones is not taken on trust: the digest of what it passes over must be that of what was loaded.
 */
export function createWriter(target: Target, reject: Reject): Writer {
  const { rows: loadedBefore, digest: digestBefore } = target.progress
  let taken = 0
  let digest = ''
  let loading: Promise<void> = Promise.resolve()

  const isNew = (batch: OutputBatch): boolean => {
    if (batch.from >= loadedBefore) return true
    if (batch.to > loadedBefore) throw sourceChanged()
    if (batch.to === loadedBefore && batch.digest !== digestBefore) throw sourceChanged()
    return false
  }

  return {
    write: async (records) => {
      const json = JSON.stringify(records.map(({ row }) => row))
      digest = createHash('sha256').update(digest).update(json).digest('hex')
      const batch = { records, json, from: taken, to: taken + records.length, digest }
      taken = batch.to
      if (!isNew(batch)) return
      await loading
      loading = target.load(batch, reject)
      // Heard at the next batch, or at the end.
      loading.catch(() => {})
    },
    end: async () => {
      await loading
      if (taken < loadedBefore) throw sourceChanged()
    },
  }
}

const sourceChanged = (): JobError =>
  new JobError(
    'source_changed',
    'An earlier attempt has loaded rows that the source does not give any more, so this one cannot go on where that one ' +
      'stopped. Look at what is loaded, and submit a new job. A query gives its rows in the same order only with "order by".',
    { permanent: true },
  )
