import { useEffect } from 'preact/hooks'
import type { Schedule } from '../../api/answers.ts'

/** What becomes of a tick is known this long after it. */
const KNOWN_AFTER_MS = 1_500

/** Looks anew once the next tick has come: one that was refused or skipped makes no job, and so raises no event. */
export const useReloadAtTick = (reload: () => void, schedules: readonly Schedule[]): void => {
  const nextMs = Math.min(
    ...schedules.flatMap(({ next_run_at }) => (next_run_at ? [Date.parse(next_run_at)] : [])),
  )
  useEffect(() => {
    const delayMs = nextMs - Date.now() + KNOWN_AFTER_MS
    // What is overdue waits for a worker: when that comes, there are events. Longer ones are beyond the browser's timers.
    if (delayMs < 0 || delayMs > 86_400_000) return
    const timer = setTimeout(reload, delayMs)
    return () => clearTimeout(timer)
  }, [nextMs])
}
