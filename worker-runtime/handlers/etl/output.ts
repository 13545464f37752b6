import type { NumberedRow } from '../sources/row-batch.ts'
import type { Stage } from './stage.ts'

/** The end of the transformation: cuts what comes out of it into batches of one size. */
export function collectOutput(batchSize: number): Stage & {
  /** The batches that are full; after the end also the last one. */
  take(): NumberedRow[][]
} {
  let full: NumberedRow[][] = []
  let begun: NumberedRow[] = []
  const close = (): void => {
    if (begun.length > 0) full.push(begun)
    begun = []
  }
  return {
    isFull: () => false,
    push: (record) => {
      begun.push(record)
      if (begun.length === batchSize) close()
    },
    end: close,
    take: () => {
      const taken = full
      full = []
      return taken
    },
  }
}
