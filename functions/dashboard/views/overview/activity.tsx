import { useSignal } from '@preact/signals'
import type { JobSummary, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import type { JobEvent } from '../../live/frames.ts'
import { useLive } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { Empty, Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'

const SHOWN = 10

type Entry = Pick<JobEvent['job'], 'id' | 'name' | 'type' | 'status'> & { at: string }

/** The newest changes, as they come. */
export const Activity = () => {
  const jobs = useResource((signal) => get<Page<JobSummary>>('/jobs', { limit: SHOWN }, signal))
  const fresh = useSignal<Entry[]>([])
  useLive({
    onEvents: (events) => {
      const newest = events.slice(-SHOWN).map(({ job, at }) => ({ ...job, at }))
      fresh.value = uniqueById([...newest.reverse(), ...fresh.value])
    },
    // Earlier events may be outdated, or undone by a database crash.
    onResync: () => {
      fresh.value = []
      jobs.reload()
    },
  })
  return (
    <Panel title="Activity" about="Changes of jobs, newest first.">
      <Loaded resource={jobs}>
        {({ items }) => {
          const entries = uniqueById([...fresh.value, ...items.map(toEntry)])
          if (entries.length === 0) return <NoJobs />
          return (
            <ul class="activity">
              {entries.map(({ id, name, type, status, at }) => (
                <li key={id}>
                  <StatusBadge status={status} />
                  <a href={linkTo(`/jobs/${id}`)}>{name}</a>
                  <span class="muted">{type}</span>
                  <Time at={at} />
                </li>
              ))}
            </ul>
          )
        }}
      </Loaded>
    </Panel>
  )
}

const toEntry = ({ id, name, type, status, created_at, started_at, finished_at }: JobSummary): Entry => ({
  ...{ id, name, type, status },
  at: finished_at ?? started_at ?? created_at,
})

const uniqueById = (entries: Entry[]): Entry[] =>
  entries.filter(({ id }, n) => entries.findIndex((other) => other.id === id) === n).slice(0, SHOWN)

const NoJobs = () => (
  <Empty title="No jobs yet">
    <p class="muted">
      <a href={linkTo('/jobs', { submit: 'new' })}>Submit the first one</a>, or run <code>npm run demo</code>{' '}
      to see the queue at work.
    </p>
  </Empty>
)
