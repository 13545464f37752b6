import type { JobContext } from '../../handler-api.ts'

const PROGRESS_MS = 1_000
const LOG_MS = 10_000

export type Counts = { readonly read: number; readonly loaded: number; readonly bad: number }

/** Says how far the job is: shown with it about once a second, and now and then in its log. */
export function createReport(ctx: Pick<JobContext, 'progress' | 'log'>): {
  tick(fraction: number | undefined, counts: Counts): void
} {
  let shownAt = performance.now()
  let loggedAt = shownAt
  return {
    tick: (fraction, counts) => {
      const now = performance.now()
      if (now - shownAt < PROGRESS_MS) return
      shownAt = now
      const note = describeCounts(counts)
      ctx.progress(fraction ?? 0, note)
      if (now - loggedAt < LOG_MS) return
      loggedAt = now
      ctx.log.info(note)
    },
  }
}

export function describeCounts({ read, loaded, bad }: Counts): string {
  const parts = [`${show(read)} ${read === 1 ? 'row' : 'rows'} read`, `${show(loaded)} loaded`]
  return [...parts, ...(bad > 0 ? [`${show(bad)} bad`] : [])].join(', ')
}

const show = (count: number): string => count.toLocaleString('en-US')
