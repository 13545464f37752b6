import { useId } from 'preact/hooks'
import type { JobSummary, Leader, Worker } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { Badge, Tags } from '../../ui/badges.tsx'
import { bytes, count, counted } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'

const TONES = { online: 'green', draining: 'amber', offline: 'neutral' } as const
const SHOWN_JOBS = 5

/** One worker: its load, and what it runs for this organisation. */
export const WorkerCard = (props: { worker: Worker; leader: Leader | null; jobs: JobSummary[] }) => {
  const { worker, leader } = props
  const id = useId()
  return (
    <li class="panel worker" aria-labelledby={id}>
      <header>
        <h2 id={id}>{worker.worker_id}</h2>
        <Badge tone={TONES[worker.status]}>{worker.status}</Badge>
        {leader && <Badge tone="accent">{`leader, term ${leader.term}`}</Badge>}
      </header>
      {worker.status === 'draining' && <p class="muted">It finishes its jobs and stops.</p>}
      {worker.status !== 'offline' && <Load worker={worker} />}
      <dl class="facts">
        {worker.hostname !== null && (
          <>
            <dt>Host</dt>
            <dd>{worker.hostname}</dd>
          </>
        )}
        <dt>Last seen</dt>
        <dd>
          <Time at={worker.last_seen} />
        </dd>
        <dt>Started</dt>
        <dd>
          <Time at={worker.started_at} />
        </dd>
        {worker.jobs_processed !== null && (
          <>
            <dt>Processed</dt>
            <dd>{counted(worker.jobs_processed, 'job')}</dd>
          </>
        )}
        <dt>Room</dt>
        <dd>
          {counted(worker.cpu_units, 'CPU unit')}, {bytes(worker.memory_mb * 1024 ** 2)} of memory
        </dd>
        <dt>Types</dt>
        <dd>
          <Tags tags={worker.types} />
        </dd>
        {leader && (
          <>
            <dt>Elected</dt>
            <dd>
              <Time at={leader.elected_at} />
            </dd>
          </>
        )}
      </dl>
      {worker.status !== 'offline' && <Jobs jobs={props.jobs} />}
    </li>
  )
}

/** Busy slots, as a bar and in words: admins see all of them, others only those of their own organisation. */
const Load = ({ worker: { worker_id, hostname, running, slots } }: { worker: Worker }) => (
  <div class="load">
    <meter
      aria-label={`Busy slots of ${worker_id}`}
      min={0}
      max={Math.max(1, slots)}
      value={running}
      class={running >= slots ? 'full' : ''}
    />
    <span>
      {count(running)} of {count(slots)} slots busy{hostname === null && ' with your jobs'}
    </span>
  </div>
)

const Jobs = ({ jobs }: { jobs: JobSummary[] }) =>
  jobs.length === 0 ? null : (
    <div class="titled">
      <h3>Runs now</h3>
      <ul class="running-jobs">
        {jobs.slice(0, SHOWN_JOBS).map(({ id, name, type, started_at }) => (
          <li key={id}>
            <a href={linkTo(`/jobs/${id}`)}>{name}</a>
            <span class="muted">{type}</span>
            <Time at={started_at} />
          </li>
        ))}
      </ul>
      {jobs.length > SHOWN_JOBS && (
        <p>
          <a href={linkTo('/jobs', { status: 'running' })}>and {count(jobs.length - SHOWN_JOBS)} more</a>
        </p>
      )}
    </div>
  )
