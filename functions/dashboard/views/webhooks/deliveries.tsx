import type { DeliverySummary, Source } from '../../api/answers.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo, replaceQuery, route } from '../../router.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { capitalised } from '../../ui/format.ts'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Segments } from '../../ui/segments.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { Outcome, STATUSES } from './outcome.tsx'
import { SCHEMES } from './schemes.ts'
import { signedEvent } from './signed-event.ts'

const OPTIONS = [
  { value: '', label: 'All' },
  ...STATUSES.map((value) => ({ value, label: capitalised(value) })),
]

/** The journal of a source: each request to its address, and what became of it. */
export const Deliveries = ({ source }: { source: Source }) => {
  const status = route.value.query.get('status') ?? ''
  const pages = usePages<DeliverySummary>(`/webhooks/sources/${source.id}/deliveries`, { status })
  // Those that become a job raise its events. The others raise none: for them there is the button.
  useReloadOnEvents(pages.reload, ({ job }) => job.attempts === 0)
  return (
    <Panel
      title="Deliveries"
      about="Newest first."
      actions={
        <>
          <Segments
            label="Outcome"
            value={status}
            options={OPTIONS}
            onChange={(value) => replaceQuery({ status: value })}
          />
          <Button kind="quiet" small icon="refresh" label="Look for new deliveries" onClick={pages.reload} />
        </>
      }
    >
      <PagedTable
        pages={pages}
        label="List of deliveries"
        keyOf={({ id }) => id}
        columns={COLUMNS}
        empty={<NoDeliveries source={source} status={status} />}
      />
    </Panel>
  )
}

const COLUMNS: Column<DeliverySummary>[] = [
  {
    title: 'Received',
    cell: ({ id, source_id, received_at }) => (
      <a href={linkTo(`/webhooks/${source_id}/${id}`)}>
        <Time at={received_at} />
      </a>
    ),
  },
  { title: 'Outcome', cell: ({ status }) => <Outcome status={status} /> },
  {
    title: 'Event',
    cell: ({ event_type, event_id, replay_of }) => (
      <span class="lines">
        <span>
          {event_type ?? '–'}
          {replay_of && <span class="muted"> (replay)</span>}
        </span>
        {event_id && <code class="clip muted">{event_id}</code>}
      </span>
    ),
  },
  { title: 'Reason', minor: true, cell: ({ reason }) => <span class="reason">{reason ?? '–'}</span> },
  {
    title: 'Job',
    minor: true,
    cell: ({ job_id }) => (job_id ? <a href={linkTo(`/jobs/${job_id}`)}>its job</a> : '–'),
  },
]

const NoDeliveries = ({ source, status }: { source: Source; status: string }) =>
  status ? (
    <Empty title={`No delivery was ${status}`}>
      <p class="muted">Choose another outcome to see the others.</p>
    </Empty>
  ) : (
    <div class="stack">
      <Empty title="Nothing was delivered yet">
        <p class="muted">{SCHEMES[source.scheme].setUp} Or send an event yourself, from a shell:</p>
      </Empty>
      <Code label="Event in a shell" value={signedEvent(source)} />
    </div>
  )
