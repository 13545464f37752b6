import { useSignal } from '@preact/signals'
import type { JobSummary, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { summary, useReloadOnEvents } from '../../live/live.ts'
import { Button } from '../../ui/button.tsx'
import { count, shortCount, things } from '../../ui/format.ts'
import { Empty, Failure, Skeleton } from '../../ui/notes.tsx'
import { Stat, Stats } from '../../ui/panel.tsx'
import { byWorker } from './by-worker.ts'
import { type Fleet as Answer, useFleet } from './use-fleet.ts'
import { WorkerCard } from './worker-card.tsx'

/** All workers, each with its load. Those that are gone fold away. */
export const Fleet = () => {
  const { fleet, first } = useFleet()
  const running = useResource((signal) =>
    get<Page<JobSummary>>('/jobs', { status: 'running', limit: 100 }, signal),
  )
  useReloadOnEvents(running.reload, ({ job }) => job.attempts > 0)
  const showsGone = useSignal(false)
  if (!fleet) {
    return first.error.value ? (
      <Failure error={first.error.value} retry={first.reload} />
    ) : (
      <Skeleton height="18rem" />
    )
  }
  const present = fleet.workers.filter(({ status }) => status !== 'offline')
  const gone = fleet.workers.filter(({ status }) => status === 'offline').toSorted(lastSeenFirst)
  const jobs = byWorker(running.data.value?.items ?? [])
  return (
    <section aria-label="Workers">
      <Totals fleet={fleet} />
      {present.length === 0 && <NoWorkers />}
      <ul class="workers">
        {[...present, ...(showsGone.value ? gone : [])].map((worker) => (
          <WorkerCard
            key={worker.worker_id}
            worker={worker}
            leader={fleet.leader?.worker_id === worker.worker_id ? fleet.leader : null}
            jobs={jobs.get(worker.worker_id) ?? []}
          />
        ))}
      </ul>
      {gone.length > 0 && (
        <p class="more">
          <Button
            small
            onClick={() => {
              showsGone.value = !showsGone.value
            }}
          >
            {showsGone.value ? 'Hide' : 'Show'} {count(gone.length)} offline
          </Button>
        </p>
      )}
    </section>
  )
}

const lastSeenFirst = (a: { last_seen: string }, b: { last_seen: string }): number =>
  Date.parse(b.last_seen) - Date.parse(a.last_seen)

const Totals = ({ fleet: { workers } }: { fleet: Answer }) => {
  const present = workers.filter(({ status }) => status !== 'offline')
  const sum = (of: (worker: Answer['workers'][number]) => number): number =>
    present.reduce((total, worker) => total + of(worker), 0)
  const draining = present.filter(({ status }) => status === 'draining').length
  const online = present.length - draining
  const slots = sum((worker) => worker.slots)
  const busy = sum((worker) => worker.running)
  const seesAll = workers.some(({ hostname }) => hostname !== null)
  return (
    <Stats>
      <Stat
        label="Online"
        value={count(online)}
        unit={things(online, 'worker')}
        note={onlineNote(online, draining)}
      />
      <Stat
        label="Busy"
        value={count(busy)}
        unit={things(busy, 'slot')}
        note={`${seesAll ? '' : 'with your jobs, '}of ${count(slots)} in all`}
      />
      <Stat
        label="CPU"
        value={count(sum((worker) => worker.cpu_units))}
        unit="units"
        note="for jobs, in all"
      />
      {seesAll ? (
        <Stat
          label="Processed"
          value={shortCount(sum((worker) => worker.jobs_processed ?? 0))}
          unit="jobs"
          note="since they started"
        />
      ) : (
        <Stat
          label="Memory"
          value={count(Math.round(sum((worker) => worker.memory_mb) / 1024))}
          unit="GiB"
          note="for jobs, in all"
        />
      )}
    </Stats>
  )
}

/** What the predicted work asks for comes first: more workers will start, or some stop. */
const onlineNote = (online: number, draining: number): string => {
  const wanted = summary.value?.workers.wanted ?? online
  if (wanted !== online) return `the work ahead asks for ${count(wanted)}`
  return draining > 0 ? `${count(draining)} draining` : 'as many as the work asks for'
}

const NoWorkers = () => (
  <div class="panel">
    <Empty title="No worker runs">
      <p class="muted">
        Jobs are accepted, and wait until one does. Start one with <code>npm run worker</code>, or everything
        on this machine with <code>npm run dev</code>.
      </p>
    </Empty>
  </div>
)
