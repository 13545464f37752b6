import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

/** Who moves the pointer over the rows is about to press one: for so long they stay where they are. */
const HOLD_MS = 2_000

/** Whether new rows should wait: somebody points at one, or nobody looks at the page. */
export const useHold = (): { held: ReadonlySignal<boolean>; hold: () => void; release: () => void } => {
  const pointing = useSignal(false)
  const hidden = useSignal(document.hidden)
  const timer = useRef<number | undefined>(undefined)
  const until = useRef(0)
  useEffect(() => {
    const look = (): void => {
      hidden.value = document.hidden
    }
    document.addEventListener('visibilitychange', look)
    return () => {
      document.removeEventListener('visibilitychange', look)
      clearTimeout(timer.current)
    }
  }, [])
  const wait = (): void => {
    const leftMs = until.current - Date.now()
    pointing.value = leftMs > 0
    if (leftMs > 0) timer.current = setTimeout(wait, leftMs)
  }
  return {
    held: useComputed(() => pointing.value || hidden.value),
    hold: () => {
      until.current = Date.now() + HOLD_MS
      if (!pointing.value) wait()
    },
    release: () => {
      clearTimeout(timer.current)
      pointing.value = false
    },
  }
}
