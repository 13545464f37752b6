import { useSignal } from '@preact/signals'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { Segments } from '../../ui/segments.tsx'

export const RANGES = [
  { value: '1h', label: '1 h' },
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
] as const

type Range = (typeof RANGES)[number]

/** An answer about the time up to now, and the choice of how long that is. What is shown stays until the next is there. */
export const useRange = <Answer,>(path: string, ranges: readonly Range[]) => {
  const range = useSignal<Range['value']>('1h')
  const answer = useResource((signal) => get<Answer>(path, { range: range.value }, signal))
  useReloadOnEvents(answer.reload, undefined, 5_000)
  const choice = (
    <Segments
      label="Range"
      value={range.value}
      options={ranges}
      onChange={(value) => {
        range.value = value
        answer.reload()
      }}
    />
  )
  return { answer, choice }
}
