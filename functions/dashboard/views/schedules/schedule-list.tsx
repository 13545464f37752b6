import { useSignal } from '@preact/signals'
import type { Schedule } from '../../api/answers.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo, navigate } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Badge } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { now } from '../../ui/clock.ts'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { Actions } from './actions.tsx'
import { ScheduleForm } from './schedule-form.tsx'
import { TickOutcome } from './tick.tsx'
import { tickTime } from './tick-time.ts'
import { useReloadAtTick } from './use-reload-at-tick.ts'
import { When } from './when.tsx'

const ABOUT = 'Jobs that are submitted again and again, by the clock of a time zone.'

export const ScheduleList = () => {
  const pages = usePages<Schedule>('/schedules')
  const creating = useSignal(false)
  const items = pages.items.value
  useReloadOnEvents(pages.reload, ({ job }) => (items ?? []).some((one) => isOf(one, job)))
  useReloadAtTick(pages.reload, items ?? [])
  const create = (): void => {
    creating.value = true
  }
  return (
    <>
      <PageHead title="Schedules" about={ABOUT}>
        {may('schedules:manage') && (
          <Button kind="primary" icon="plus" onClick={create}>
            New schedule
          </Button>
        )}
      </PageHead>
      <Panel title="All schedules">
        <PagedTable
          pages={pages}
          label="Schedules"
          columns={columns(pages.reload)}
          keyOf={({ id }) => id}
          empty={<NoSchedules create={create} />}
        />
      </Panel>
      {creating.value && (
        <ScheduleForm
          onSaved={({ id }) => navigate(`/schedules/${id}`)}
          onClose={() => {
            creating.value = false
          }}
        />
      )}
    </>
  )
}

/** Jobs of a schedule go by its job's type and name. */
const isOf = ({ job }: Schedule, other: { type: string; name: string }): boolean =>
  job.type === other.type && job.name === other.name

const columns = (reload: () => void): Column<Schedule>[] => [
  { title: 'Schedule', cell: (schedule) => <Name schedule={schedule} /> },
  { title: 'Next tick', cell: (schedule) => <Next schedule={schedule} /> },
  {
    title: 'Last tick',
    minor: true,
    cell: ({ last_tick }) =>
      last_tick ? (
        <span class="lines">
          <TickOutcome tick={last_tick} />
          <span class="muted">
            <Time at={last_tick.tick_at} />
          </span>
        </span>
      ) : (
        <span class="muted">none yet</span>
      ),
  },
  ...(may('schedules:manage')
    ? [
        {
          title: 'Actions',
          minor: true,
          numeric: true,
          cell: (schedule: Schedule) => <Actions schedule={schedule} onChanged={reload} onDeleted={reload} />,
        },
      ]
    : []),
]

const Name = ({ schedule: { id, name, cron, timezone, paused } }: { schedule: Schedule }) => (
  <span class="lines">
    <span>
      <a href={linkTo(`/schedules/${id}`)}>{name}</a> {paused && <Badge tone="amber">paused</Badge>}
    </span>
    <span class="muted">
      <When cron={cron} timezone={timezone} />
    </span>
  </span>
)

const Next = ({ schedule: { next_run_at, cron, timezone } }: { schedule: Schedule }) =>
  next_run_at ? (
    <span class="lines">
      <span>
        <Time at={next_run_at} /> {isOverdue(next_run_at) && <Badge tone="amber">overdue</Badge>}
      </span>
      <span class="muted">{tickTime(next_run_at, timezone, cron)}</span>
    </span>
  ) : (
    <span class="muted">not while it is paused</span>
  )

/** Nobody was there to fire it. Up to a minute is on time. */
const isOverdue = (at: string): boolean => now.value - Date.parse(at) > 60_000

const NoSchedules = ({ create }: { create: () => void }) => (
  <Empty title="No schedules yet">
    <p class="muted">
      A schedule submits a job at each tick of a cron expression: a report every morning, a clean-up every
      night.
    </p>
    {may('schedules:manage') && (
      <p>
        <Button icon="plus" onClick={create}>
          Make the first one
        </Button>
      </p>
    )}
  </Empty>
)
