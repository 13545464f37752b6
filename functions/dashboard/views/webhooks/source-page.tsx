import type { Source } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { linkTo, navigate } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Code } from '../../ui/code.tsx'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { Address, Enabled } from './address.tsx'
import { Deliveries } from './deliveries.tsx'
import { SCHEMES } from './schemes.ts'
import { SourceActions } from './source-actions.tsx'

/** One source: what it takes, what it makes of it, and its journal. */
export const SourcePage = ({ id }: { id: string }) => {
  const resource = useResource((signal) => get<Source>(`/webhooks/sources/${id}`, {}, signal), [id])
  return (
    <>
      <p class="crumbs">
        <a href={linkTo('/webhooks')}>Webhooks</a>
      </p>
      <Loaded resource={resource} bones={<Skeleton height="50vh" />}>
        {(source) => (
          <>
            <PageHead title={source.name} about={<Enabled enabled={source.enabled} />}>
              {may('webhooks:manage') && (
                <SourceActions
                  spacious
                  source={source}
                  onChanged={resource.reload}
                  onDeleted={() => navigate('/webhooks')}
                />
              )}
            </PageHead>
            <div class="stack">
              <Deliveries source={source} />
              <div class="grid">
                <Facts source={source} />
                <Panel title="Filter and template" about="Which events count, and the job that one becomes.">
                  <div class="titled">
                    <h3>Filter</h3>
                    {source.filter ? (
                      <Code label="Filter" value={source.filter} />
                    ) : (
                      <p class="muted">There is no filter: every event counts.</p>
                    )}
                    <h3>Template</h3>
                    <Code label="Template" value={source.template} />
                  </div>
                </Panel>
              </div>
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}

const Facts = ({ source }: { source: Source }) => {
  const { verification: how } = source
  const facts: [string, string | null][] = [
    ['Signature in', how.signature_header],
    ['What is signed', `${how.content}, ${how.algorithm}, ${how.encoding}`],
    ['Timestamp in', how.timestamp_header && `${how.timestamp_header}, within ${how.tolerance_seconds} s`],
    ['Id of the event', how.id_header ?? how.id_path],
    ['Type of the event', how.type_header ?? how.type_path],
  ]
  return (
    <Panel title="Address and secret" about={SCHEMES[source.scheme].setUp}>
      <div class="stack">
        <Address url={source.url} />
        <dl class="facts">
          <dt>Scheme</dt>
          <dd>{SCHEMES[source.scheme].label}</dd>
          <dt>Secret</dt>
          <dd>
            ends in <code>{source.secret_hint}</code>
            {source.previous_expires_at && (
              <>
                ; the one before ends <Time at={source.previous_expires_at} />
              </>
            )}
          </dd>
          {facts.map(
            ([label, value]) =>
              value && [
                <dt key={`${label}-label`}>{label}</dt>,
                <dd key={label}>
                  <code>{value}</code>
                </dd>,
              ],
          )}
          <dt>Made</dt>
          <dd>
            <Time at={source.created_at} />
          </dd>
        </dl>
      </div>
    </Panel>
  )
}
