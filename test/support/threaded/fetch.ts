import type { JobContext } from '../../../worker-runtime/handler-api.ts'

/** Fetches from a thread. */
export const run = async ({ url }: { url: string }, ctx: JobContext): Promise<number> =>
  (await ctx.fetch(url)).status
