import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import { type RowWindow, rowWindow } from './row-window.ts'

/** The heights that styles/jobs.css gives to rows, in pixels. */
const ROW_HEIGHT = 41
const CARD_HEIGHT = 68
const narrow = matchMedia('(width < 48rem)')

/** Which rows are on the screen while the page scrolls, and whether the first of them is. */
export const useRowWindow = (
  frame: RefObject<HTMLElement | null>,
  total: ReadonlySignal<number>,
): {
  shown: ReadonlySignal<RowWindow>
  atTop: ReadonlySignal<boolean>
  rowHeight: ReadonlySignal<number>
} => {
  const isNarrow = useSignal(narrow.matches)
  const scrolled = useSignal({ above: 0, screen: innerHeight })
  useEffect(() => {
    const measure = (): void => {
      isNarrow.value = narrow.matches
      const above = -(frame.current?.getBoundingClientRect().top ?? 0)
      scrolled.value = { above, screen: innerHeight }
    }
    measure()
    addEventListener('scroll', measure, { passive: true })
    addEventListener('resize', measure)
    return () => {
      removeEventListener('scroll', measure)
      removeEventListener('resize', measure)
    }
  }, [])
  const rowHeight = useComputed(() => (isNarrow.value ? CARD_HEIGHT : ROW_HEIGHT))
  const key = useComputed(() => {
    const { first, end } = rowWindow({ ...scrolled.value, rowHeight: rowHeight.value, rows: total.value })
    return `${first} ${end}`
  })
  return {
    // A window that has not moved is the same object: nothing is drawn for it.
    shown: useComputed(() => {
      const [first = 0, end = 0] = key.value.split(' ').map(Number)
      return { first, end }
    }),
    atTop: useComputed(() => scrolled.value.above < 2 * rowHeight.value),
    rowHeight,
  }
}
