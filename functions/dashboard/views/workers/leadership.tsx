import type { LeaderHistory } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { Refusal } from '../../api/refusal.ts'
import { useResource } from '../../api/use-resource.ts'
import { workers } from '../../live/live.ts'
import { Badge } from '../../ui/badges.tsx'
import { count } from '../../ui/format.ts'
import { Empty, Loaded, Skeleton } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { useReloadOnChange } from './use-reload-on-change.ts'

/** Who leads, and who has: each election begins a term. */
export const Leadership = () => {
  const resource = useResource(look)
  useReloadOnChange(workers.value?.leader?.term, resource.reload)
  return (
    <Panel
      title="Leader"
      about="One worker wakes delayed jobs, ticks schedules, and takes jobs from workers that have died. Should it fall silent, another takes over within seconds."
    >
      <Loaded resource={resource} bones={<Skeleton />}>
        {({ leader }) =>
          leader === null ? (
            <Empty title="No leader yet">
              <p class="muted">The first worker that starts becomes it.</p>
            </Empty>
          ) : (
            <div class="stack">
              <p>
                <code>{leader.worker_id}</code> {isAlive(leader) ? 'leads' : 'has led'} in term{' '}
                {count(leader.term)}. {!isAlive(leader) && <Badge tone="red">silent</Badge>}
              </p>
              <Table
                label="Terms, newest first"
                rows={leader.elections}
                keyOf={({ term }) => String(term)}
                columns={[
                  { title: 'Worker', cell: ({ worker_id }) => <code class="url">{worker_id}</code> },
                  { title: 'Term', numeric: true, cell: ({ term }) => count(term) },
                  { title: 'Elected', numeric: true, cell: ({ elected_at }) => <Time at={elected_at} /> },
                ]}
              />
            </div>
          )
        }
      </Loaded>
    </Panel>
  )
}

/** As the stream has it, if it has spoken: the answer gets old. */
const isAlive = ({ worker_id, alive }: LeaderHistory): boolean =>
  workers.value?.workers.some((one) => one.worker_id === worker_id && one.status !== 'offline') ?? alive

const look = async (signal: AbortSignal): Promise<{ leader: LeaderHistory | null }> => {
  try {
    return { leader: await get<LeaderHistory>('/analytics/scheduler-leader', {}, signal) }
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return { leader: null }
    throw error
  }
}
