import type { JobContext } from '../../../worker-runtime/handler-api.ts'

/** Computes for so long, or for ever, and hears nothing; with `heeds` it looks at its signal. */
export const run = async (payload: { seconds: number; heeds?: boolean }, ctx: JobContext) => {
  ctx.log.info('spins')
  const until = performance.now() + payload.seconds * 1000
  while (performance.now() < until) if (payload.heeds) ctx.signal.throwIfAborted()
  return 'spun'
}
