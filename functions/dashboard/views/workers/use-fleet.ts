import type { Leader, Page, Worker } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { Refusal } from '../../api/refusal.ts'
import { type Resource, useResource } from '../../api/use-resource.ts'
import { workers as live } from '../../live/live.ts'

export type Fleet = { workers: Worker[]; leader: Leader | null }

/** The workers as the stream has them; until it has spoken, as the API has. */
export const useFleet = (): { fleet: Fleet | undefined; first: Resource<Fleet> } => {
  const first = useResource(look)
  return { fleet: live.value ?? first.data.value, first }
}

const look = async (signal: AbortSignal): Promise<Fleet> => {
  const [page, leader] = await Promise.all([
    get<Page<Worker>>('/jobs/workers', { limit: 100 }, signal),
    get<Leader>('/jobs/scheduler/leader', {}, signal).catch(noLeader),
  ])
  return { workers: page.items, leader }
}

/** Nobody was elected yet. */
const noLeader = (error: unknown): null => {
  if (error instanceof Refusal && error.status === 404) return null
  throw error
}
