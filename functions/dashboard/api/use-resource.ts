import { type Signal, useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'

export type Resource<Value> = {
  /** The newest answer. It stays while the next one is on its way, so that nothing jumps. */
  readonly data: Signal<Value | undefined>
  readonly error: Signal<Error | undefined>
  readonly loading: Signal<boolean>
  reload(): void
}

/**
 * What a view shows, loaded when it opens, when one of `inputs` changes, and on `reload`. Reloads that come while one is on
 * its way become one more.
 */
export const useResource = <Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[] = [],
): Resource<Value> => {
  const data = useSignal<Value | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const loading = useSignal(true)
  const newest = useRef(load)
  newest.current = load
  const running = useRef<AbortController | undefined>(undefined)
  const again = useRef(false)

  const run = useCallback(async () => {
    const controller = new AbortController()
    running.current = controller
    loading.value = true
    try {
      const answer = await newest.current(controller.signal)
      if (controller.signal.aborted) return
      data.value = answer
      error.value = undefined
    } catch (reason) {
      if (controller.signal.aborted) return
      error.value = reason as Error
    }
    running.current = undefined
    loading.value = false
    if (again.current) {
      again.current = false
      void run()
    }
  }, [])

  useEffect(() => {
    data.value = undefined
    void run()
    return () => {
      again.current = false
      running.current?.abort()
    }
  }, inputs)

  const reload = useCallback(() => {
    if (running.current) again.current = true
    else void run()
  }, [])

  return { data, error, loading, reload }
}
