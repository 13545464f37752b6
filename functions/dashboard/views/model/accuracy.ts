import type { Page, PredictionAccuracy } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { type Resource, useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { replaceQuery, route } from '../../router.ts'

export const RANGES = [
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
] as const

export type Range = (typeof RANGES)[number]['value']

export type Accuracy = {
  readonly answer: Resource<PredictionAccuracy>
  /** Job types that one can choose among. */
  readonly types: readonly string[]
  /** In the address, so that one can send it to others. Empty: all types. */
  readonly type: string
  readonly range: Range
  choose(choice: { type?: string; range?: Range }): void
}

/** How good predictions for jobs of the organisation were: of the type and the time that the address names. */
export const usePredictionAccuracy = (): Accuracy => {
  const { query } = route.value
  const type = query.get('type') ?? ''
  const range = RANGES.find(({ value }) => value === query.get('range'))?.value ?? '24h'
  const answer = useResource(
    (signal) => get<PredictionAccuracy>('/analytics/prediction-accuracy', { range, type }, signal),
    [range, type],
  )
  const known = useResource(() => get<Page<{ type: string }>>('/jobs/types'))
  useReloadOnEvents(
    answer.reload,
    (event) => event.type === 'job.completed' && (!type || event.job.type === type),
    10_000,
  )
  const types = new Set(known.data.value?.items.map((one) => one.type))
  if (type) types.add(type)
  return {
    ...{ answer, type, range },
    types: [...types].sort(),
    choose: (choice) => {
      const chosen = { type, range, ...choice }
      replaceQuery({ ...chosen, range: chosen.range === '24h' ? null : chosen.range })
    },
  }
}
