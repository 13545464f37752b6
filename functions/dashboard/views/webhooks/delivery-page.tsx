import type { Delivery, Source } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { linkTo } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Code } from '../../ui/code.tsx'
import { exactTime } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { DryRun } from './dry-run.tsx'
import { OUTCOME_WORDS, Outcome } from './outcome.tsx'
import { ReplayButton } from './replay-button.tsx'

/** One delivery: what came, what it became, and what it would become by other rules. */
export const DeliveryPage = ({ sourceId, deliveryId }: { sourceId: string; deliveryId: string }) => {
  const resource = useResource(
    async (signal) => {
      const [delivery, source] = await Promise.all([
        get<Delivery>(`/webhooks/deliveries/${deliveryId}`, {}, signal),
        get<Source>(`/webhooks/sources/${sourceId}`, {}, signal),
      ])
      return { delivery, source }
    },
    [deliveryId],
  )
  return (
    <Loaded resource={resource} bones={<Skeleton height="60vh" />}>
      {({ delivery, source }) => (
        <>
          <p class="crumbs">
            <a href={linkTo('/webhooks')}>Webhooks</a> /{' '}
            <a href={linkTo(`/webhooks/${source.id}`)}>{source.name}</a>
          </p>
          <PageHead
            title={delivery.event_type ? `Delivery: ${delivery.event_type}` : 'Delivery'}
            about={
              <>
                <Outcome status={delivery.status} /> <Time at={delivery.received_at} />
              </>
            }
          >
            {may('webhooks:manage') && delivery.status !== 'rejected' && <ReplayButton delivery={delivery} />}
          </PageHead>
          <div class="grid beside">
            <What delivery={delivery} />
            {may('webhooks:manage') && delivery.status !== 'rejected' && (
              <DryRun delivery={delivery} source={source} onSaved={resource.reload} />
            )}
          </div>
        </>
      )}
    </Loaded>
  )
}

const What = ({ delivery }: { delivery: Delivery }) => (
  <Panel title="What came, and what it became">
    <div class="titled">
      <p>
        {OUTCOME_WORDS[delivery.status]} {delivery.reason}
        {delivery.status === 'rejected' &&
          ' It cannot be replayed: mend the secret or the clock, and have it sent again.'}
      </p>
      <dl class="facts">
        {delivery.job_id && (
          <>
            <dt>Job</dt>
            <dd>
              <a href={linkTo(`/jobs/${delivery.job_id}`)}>{delivery.job_id}</a>
            </dd>
          </>
        )}
        <dt>Received</dt>
        <dd>{exactTime(delivery.received_at)}</dd>
        <dt>Event id</dt>
        <dd>{delivery.event_id ? <code>{delivery.event_id}</code> : 'none: it is never a duplicate'}</dd>
        {delivery.replay_of && (
          <>
            <dt>Replay of</dt>
            <dd>
              <a href={linkTo(`/webhooks/${delivery.source_id}/${delivery.replay_of}`)}>the first delivery</a>
            </dd>
          </>
        )}
      </dl>
      <h3>Body</h3>
      {delivery.body === null ? (
        <p class="muted">It was not kept.</p>
      ) : (
        <Code label="Body" value={delivery.body} />
      )}
      <h3>Headers</h3>
      <Code label="Headers" value={headerLines(delivery.headers)} />
    </div>
  </Panel>
)

const headerLines = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
