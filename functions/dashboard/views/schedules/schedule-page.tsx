import type { Schedule, Tick } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo, navigate } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Badge } from '../../ui/badges.tsx'
import { Code } from '../../ui/code.tsx'
import { count, seconds } from '../../ui/format.ts'
import { Empty, Loaded, Skeleton } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { type Pages, usePages } from '../../ui/pager.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { Actions } from './actions.tsx'
import { NextRuns } from './next-runs.tsx'
import { TickOutcome } from './tick.tsx'
import { tickTime } from './tick-time.ts'
import { useReloadAtTick } from './use-reload-at-tick.ts'
import { When } from './when.tsx'

/** One schedule: when it ticks, what it submits, and what became of its ticks. */
export const SchedulePage = ({ id }: { id: string }) => {
  const resource = useResource((signal) => get<Schedule>(`/schedules/${id}`, {}, signal), [id])
  const ticks = usePages<Tick>(`/schedules/${id}/ticks`, {}, 20)
  const schedule = resource.data.value
  const reload = (): void => {
    resource.reload()
    ticks.reload()
  }
  useReloadOnEvents(
    reload,
    ({ job }) => job.type === schedule?.job.type && job.name === schedule.job.name && job.attempts === 0,
  )
  useReloadAtTick(reload, schedule ? [schedule] : [])
  return (
    <>
      <p class="crumbs">
        <a href={linkTo('/schedules')}>Schedules</a>
      </p>
      <Loaded resource={resource} bones={<Skeleton height="50vh" />}>
        {(schedule) => (
          <>
            <PageHead title={schedule.name} about={<State schedule={schedule} />}>
              {may('schedules:manage') && (
                <Actions
                  spacious
                  schedule={schedule}
                  onChanged={reload}
                  onDeleted={() => navigate('/schedules')}
                />
              )}
            </PageHead>
            <div class="grid">
              <Panel title="Ticks to come" about={`By the clocks of ${schedule.timezone}.`}>
                {schedule.paused ? (
                  <Empty title="It is paused">
                    <p class="muted">It does not tick until it is resumed. Jobs that it has made go on.</p>
                  </Empty>
                ) : (
                  <NextRuns runs={schedule.next_runs} cron={schedule.cron} timezone={schedule.timezone} />
                )}
              </Panel>
              <TheJob schedule={schedule} />
              <Panel title="Ticks so far" wide about={missed(schedule)}>
                <Ticks pages={ticks} schedule={schedule} />
              </Panel>
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}

const State = ({ schedule: { cron, timezone, paused } }: { schedule: Schedule }) => (
  <>
    <When cron={cron} timezone={timezone} /> {paused && <Badge tone="amber">paused</Badge>}
  </>
)

const missed = ({ catch_up, skipped_ticks }: Schedule): string =>
  `Of missed ticks ${CATCH_UP_WORDS[catch_up]}. Missed and never run so far: ${count(skipped_ticks)}.`

const CATCH_UP_WORDS = { skip: 'none is run', one: 'the newest is run', all: 'all are run, at most 100' }

const TheJob = ({ schedule: { job } }: { schedule: Schedule }) => (
  <Panel
    title="What it submits"
    actions={<a href={linkTo('/jobs', { name: job.name, type: job.type })}>Its jobs</a>}
  >
    <div class="stack">
      <dl class="facts">
        <dt>Name</dt>
        <dd>{job.name}</dd>
        <dt>Type</dt>
        <dd>{job.type}</dd>
        <dt>Priority</dt>
        <dd>{job.priority}</dd>
        <dt>Attempts</dt>
        <dd>up to {count(job.retry.max_attempts)}</dd>
        {job.timeout_seconds !== null && (
          <>
            <dt>Timeout</dt>
            <dd>{seconds(job.timeout_seconds)}</dd>
          </>
        )}
        {job.deadline_seconds !== null && (
          <>
            <dt>Deadline</dt>
            <dd>{seconds(job.deadline_seconds)} after its tick</dd>
          </>
        )}
      </dl>
      <Code label="Payload" value={job.payload} />
    </div>
  </Panel>
)

const Ticks = ({ pages, schedule }: { pages: Pages<Tick>; schedule: Schedule }) => (
  <PagedTable
    pages={pages}
    label="List of ticks"
    keyOf={({ tick_at }) => tick_at}
    columns={[
      { title: 'Due', cell: ({ tick_at }) => tickTime(tick_at, schedule.timezone, schedule.cron) },
      { title: 'Outcome', cell: (tick) => <TickOutcome tick={tick} /> },
      { title: 'Reason', cell: ({ reason }) => reason ?? <span class="muted">–</span> },
      { title: 'Handled', minor: true, cell: ({ fired_at }) => <Time at={fired_at} /> },
    ]}
    empty={
      <Empty title="It has not ticked yet">
        <p class="muted">What becomes of each tick will stand here, with the way to its job.</p>
      </Empty>
    }
  />
)
