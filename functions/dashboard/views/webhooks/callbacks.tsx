import { useSignal } from '@preact/signals'
import type { CallbackEndpoint } from '../../api/answers.ts'
import { may } from '../../session/session.ts'
import { Badge } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { CallbackSecret } from './callback-secret.tsx'
import { EndpointActions } from './endpoint-actions.tsx'
import { EndpointForm } from './endpoint-form.tsx'

/** Whom SmartQueue tells when jobs end. */
export const Callbacks = () => {
  const pages = usePages<CallbackEndpoint>('/callbacks/endpoints')
  const adding = useSignal(false)
  const add = (): void => {
    adding.value = true
  }
  return (
    <Panel
      title="Callbacks"
      about="URLs that are told when jobs of the organisation end, signed as Standard Webhooks describes."
      actions={
        may('webhooks:manage') && (
          <Button icon="plus" onClick={add}>
            Add an endpoint
          </Button>
        )
      }
    >
      <CallbackSecret />
      <PagedTable
        pages={pages}
        label="List of endpoints"
        columns={columns(pages.reload)}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No endpoints yet">
            <p class="muted">
              An endpoint is told of all jobs. To be told of a single one, name a callback_url when you submit
              it.
            </p>
          </Empty>
        }
      />
      {adding.value && (
        <EndpointForm
          onSaved={pages.reload}
          onClose={() => {
            adding.value = false
          }}
        />
      )}
    </Panel>
  )
}

const columns = (reload: () => void): Column<CallbackEndpoint>[] => [
  { title: 'Endpoint', cell: (endpoint) => <Endpoint endpoint={endpoint} /> },
  {
    title: 'Told of',
    minor: true,
    cell: ({ events }) =>
      events.length > 0 ? (
        events.map((event) => event.replace('job.', '')).join(', ')
      ) : (
        <span class="muted">jobs that name it</span>
      ),
  },
  ...(may('webhooks:manage')
    ? [
        {
          title: 'Actions',
          numeric: true,
          cell: (endpoint: CallbackEndpoint) => <EndpointActions endpoint={endpoint} onChanged={reload} />,
        },
      ]
    : []),
]

const Endpoint = ({ endpoint: { url, disabled_at, disabled_reason } }: { endpoint: CallbackEndpoint }) => (
  <span class="lines">
    <code class="url">{url}</code>
    <span class="badge-line">
      <Badge tone={disabled_at ? 'amber' : 'green'}>{disabled_at ? 'disabled' : 'enabled'}</Badge>
      {disabled_reason && <span class="muted">{disabled_reason}</span>}
    </span>
  </span>
)
