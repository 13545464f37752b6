import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Job, JobCallback, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { count } from '../../ui/format.ts'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

/** Who was told of the end of the job. What tells them are jobs, too. */
export const Callbacks = ({ job }: { job: Job }) => {
  const callbacks = useResource(
    (signal) => get<Page<JobCallback>>(`/jobs/${job.id}/callbacks`, { limit: 50 }, signal),
    [isFinished(job.status)],
  )
  const items = callbacks.data.value?.items ?? []
  useReloadOnEvents(callbacks.reload, (event) => items.some(({ id }) => id === event.job.id))
  if (items.length === 0) return null
  return (
    <Panel title="Callbacks" about="Who was told of the end of the job." wide>
      <Table
        label="Callbacks of the job"
        rows={items}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Event', cell: ({ id, event }) => <a href={linkTo(`/jobs/${id}`)}>{event}</a> },
          { title: 'To', cell: ({ host }) => host },
          { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
          { title: 'Attempts', numeric: true, cell: ({ attempts }) => count(attempts) },
          { title: 'Error', minor: true, cell: ({ error }) => error?.message ?? '' },
          { title: 'Told', cell: ({ finished_at }) => <Time at={finished_at} /> },
        ]}
      />
    </Panel>
  )
}
