import type { NumberedRow } from '../sources/row-batch.ts'

/** Takes rows and hands on to the next stage what it makes of them. Nothing here waits: a batch goes through in one go. */
export type Stage = {
  push(record: NumberedRow): void
  /** No more rows come: what was held back goes on. */
  end(): void
  /** Further rows would change nothing. */
  isFull(): boolean
}

/** What a stage adds to those after it: `push`, and seldom more. */
export const before = (next: Stage, own: Pick<Stage, 'push'> & Partial<Stage>): Stage => ({
  end: () => next.end(),
  isFull: () => next.isFull(),
  ...own,
})
