import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Place } from '../../charts/xy-plot.tsx'
import { navigate } from '../../router.ts'
import { nearest, type Sample } from './scatter-data.ts'

/** How near the pointer must be, in pixels: a finger is no needle. */
const REACH = 24

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }

/** Which job is pointed at. It stays chosen when the samples are loaded anew. */
export const usePointer = (samples: readonly Sample[], place: RefObject<Place | undefined>) => {
  const choice = useSignal<{ jobId: string; isByKey: boolean } | undefined>(undefined)
  // From left to right, as keys go.
  const sorted = useMemo(
    () => samples.toSorted((a, b) => a.predicted_ms - b.predicted_ms || a.actual_ms - b.actual_ms),
    [samples],
  )
  const index = sorted.findIndex(({ job_id }) => job_id === choice.value?.jobId)
  const chosen = sorted[index]
  const choose = (sample: Sample | undefined, isByKey: boolean): void => {
    if (sample?.job_id === choice.peek()?.jobId && isByKey === choice.peek()?.isByKey) return
    choice.value = sample && { jobId: sample.job_id, isByKey }
  }
  const open = (): void => {
    if (chosen) navigate(`/jobs/${chosen.job_id}`)
  }

  const handlers = {
    onPointerMove: (event: PointerEvent & { currentTarget: HTMLElement }) => {
      const current = place.current
      if (!current) return
      const box = event.currentTarget.getBoundingClientRect()
      const points = sorted.map((one) => ({ x: current.x(one.predicted_ms), y: current.y(one.actual_ms) }))
      const found = nearest(points, { x: event.clientX - box.left, y: event.clientY - box.top }, REACH)
      choose(found === undefined ? undefined : sorted[found], false)
    },
    onPointerLeave: () => choose(undefined, false),
    onBlur: () => choose(undefined, false),
    onClick: open,
    onKeyDown: (event: KeyboardEvent) => {
      const step = STEPS[event.key]
      if (event.key === 'Enter') open()
      if (event.key === 'Escape') choose(undefined, true)
      if (!step || sorted.length === 0) return
      event.preventDefault()
      const from = index < 0 ? (step > 0 ? -1 : 0) : index
      choose(sorted[(from + step + sorted.length) % sorted.length], true)
    },
  }
  return { chosen, isByKey: choice.value?.isByKey === true, handlers }
}
