import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { post } from '../../api/api.ts'
import { type Faults, faultsFor } from '../../ui/faults.ts'

export type Preview = { runs: string[]; faults: Faults['at'] }

const PAUSE_MS = 300

/** When an expression would tick, or what is wrong with it, once nobody has typed for a moment. Nothing is stored. */
export const usePreview = (cron: string, timezone: string): ReadonlySignal<Preview> => {
  const preview = useSignal<Preview>({ runs: [], faults: {} })
  useEffect(() => {
    let current = true
    const look = async (): Promise<Preview> => {
      if (!cron.trim() || !timezone.trim()) return { runs: [], faults: {} }
      try {
        const { next_runs } = await post<{ next_runs: string[] }>('/schedules/preview', { cron, timezone })
        return { runs: next_runs, faults: {} }
      } catch (error) {
        return { runs: [], faults: faultsFor(error, ['/cron', '/timezone']).at }
      }
    }
    const timer = setTimeout(async () => {
      const found = await look()
      if (current) preview.value = found
    }, PAUSE_MS)
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [cron, timezone])
  return preview
}
