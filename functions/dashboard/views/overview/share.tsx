import type { Queue } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { Bars } from '../../charts/bars.tsx'
import { useReloadOnEvents } from '../../live/live.ts'
import { Badge } from '../../ui/badges.tsx'
import { now } from '../../ui/clock.ts'
import { count, counted, percent, seconds } from '../../ui/format.ts'
import { Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

type Numbers = NonNullable<Queue['share']>
type Organisation = NonNullable<Queue['organisations']>[number]

/** The organisation's part of the workers' time, and for admins those of all. */
export const Share = () => {
  const queue = useResource((signal) => get<Queue>('/queue', {}, signal))
  useReloadOnEvents(queue.reload, undefined, 5_000)
  return (
    <>
      <Panel
        title="Share of the workers"
        about="Organisations with work share the workers' time by weight. Unused time goes to the others."
        wide
      >
        <Loaded resource={queue}>
          {({ share }) =>
            share ? (
              <Own {...share} />
            ) : (
              <p class="muted">Not available yet: the database has just recovered from a crash.</p>
            )
          }
        </Loaded>
      </Panel>
      {queue.data.value?.organisations && <Organisations rows={queue.data.value.organisations} />}
    </>
  )
}

/** An organisation that has only just started waiting has used nothing yet. */
const NOTICEABLE_MS = 60_000

const Own = ({ weight, share, used, waiting_jobs, waiting_seconds, running_jobs, short_since }: Numbers) => (
  <div class="stack">
    <Bars
      max={1}
      bars={[
        { label: 'Used, last minute', value: used, text: percent(used, 0), strong: true },
        { label: `Share, weight ${weight}`, value: share, text: percent(share, 0) },
      ]}
    />
    <p>
      {counted(waiting_jobs, 'job')} ready, {seconds(waiting_seconds)} of predicted work;{' '}
      {count(running_jobs)} running.
    </p>
    {short_since && now.value - Date.parse(short_since) > NOTICEABLE_MS && (
      <p>
        <Badge tone="amber">below share</Badge> This organisation has used less than half of its share since{' '}
        <Time at={short_since} />.
      </p>
    )}
  </div>
)

const Organisations = ({ rows }: { rows: readonly Organisation[] }) => (
  <Panel title="Organisations" about="Those with jobs, highest usage first." wide>
    <Table
      label="Organisations"
      rows={rows}
      keyOf={({ id }) => id}
      empty={<p class="muted">No organisation has ready or running jobs.</p>}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        { title: 'Used', numeric: true, cell: ({ used }) => percent(used, 0) },
        { title: 'Share', numeric: true, cell: ({ share }) => percent(share, 0) },
        { title: 'Weight', numeric: true, minor: true, cell: ({ weight }) => weight },
        { title: 'Waiting', numeric: true, cell: ({ waiting_jobs }) => count(waiting_jobs) },
        { title: 'Waiting work', numeric: true, cell: ({ waiting_seconds }) => seconds(waiting_seconds) },
        { title: 'Running', numeric: true, cell: ({ running_jobs }) => count(running_jobs) },
        {
          title: 'Below share since',
          minor: true,
          cell: ({ short_since }) => (short_since ? <Time at={short_since} /> : '–'),
        },
      ]}
    />
  </Panel>
)
