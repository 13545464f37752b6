import type { JobContext } from '../../handler-api.ts'
import { fingerprint, fromCheckpoint, toCheckpoint } from './checkpoint.ts'
import type { MlPayload } from './schema.ts'
import type { TrainingState } from './training.ts'

export type Checkpoints = {
  /** Where an earlier attempt left off. */
  last(): TrainingState | undefined
  keep(state: TrainingState): Promise<void>
}

/** An epoch may take less time than it takes to store it. So much of the work is done twice at most. */
const EVERY_MS = 2_000

export function createCheckpoints(
  ctx: JobContext,
  { series: _source, missing: _missing, ...settings }: MlPayload,
  values: Float64Array,
): Checkpoints {
  const of = fingerprint(settings, values)
  let keptAtMs = performance.now()
  return {
    last: () => {
      if (ctx.lastCheckpoint === null) return undefined
      const state = fromCheckpoint(ctx.lastCheckpoint, of)
      ctx.log.info(
        state
          ? `Goes on after epoch ${state.trainLosses.length + state.finished} of an earlier attempt`
          : 'The checkpoint of an earlier attempt is of other values: begins anew',
      )
      return state
    },
    keep: async (state) => {
      if (performance.now() - keptAtMs < EVERY_MS) return
      keptAtMs = performance.now()
      // Training can do without it, and so it does not fail for it.
      await ctx.checkpoint(toCheckpoint(state, of)).catch((error: Error) => {
        ctx.log.warn(`The checkpoint could not be stored: ${error.message}`)
      })
    },
  }
}
