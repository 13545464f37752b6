import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Forecast, NewJob } from '../../../api/answers.ts'
import { api } from '../../../api/api.ts'

const SETTLES_MS = 300

export type Forecasting = {
  /** The newest; it stays while the next one is on its way. */
  readonly forecast: Signal<Forecast | undefined>
  readonly error: Signal<unknown>
  readonly busy: Signal<boolean>
}

/** What the API predicts of the job as one types. A request that is overtaken by the next is given up. */
export const useForecast = (request: NewJob | undefined): Forecasting => {
  const forecast = useSignal<Forecast | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  useEffect(() => {
    error.value = undefined
    if (!request) {
      forecast.value = undefined
      return
    }
    busy.value = true
    const controller = new AbortController()
    const ask = async (): Promise<void> => {
      const { signal } = controller
      try {
        forecast.value = await api<Forecast>('/predictions', { method: 'POST', json: request, signal })
      } catch (reason) {
        if (signal.aborted) return
        forecast.value = undefined
        error.value = reason
      }
      busy.value = false
    }
    const timer = setTimeout(ask, SETTLES_MS)
    return () => {
      clearTimeout(timer)
      controller.abort()
      busy.value = false
    }
  }, [JSON.stringify(request)])
  return { forecast, error, busy }
}
