import { useSignal } from '@preact/signals'
import type { Source } from '../../api/answers.ts'
import { linkTo, navigate } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { Address, Enabled } from './address.tsx'
import { SCHEMES } from './schemes.ts'
import { SourceActions } from './source-actions.tsx'
import { SourceForm } from './source-form.tsx'

/** All senders whose events become jobs. */
export const Sources = () => {
  const pages = usePages<Source>('/webhooks/sources')
  const creating = useSignal(false)
  const create = (): void => {
    creating.value = true
  }
  return (
    <Panel
      title="Sources"
      about="Senders that sign their events, and the job that each event becomes."
      actions={
        may('webhooks:manage') && (
          <Button kind="primary" icon="plus" onClick={create}>
            New source
          </Button>
        )
      }
    >
      <PagedTable
        pages={pages}
        label="List of sources"
        columns={columns(pages.reload)}
        keyOf={({ id }) => id}
        empty={<NoSources create={create} />}
      />
      {creating.value && (
        <SourceForm
          onSaved={pages.reload}
          onClose={(made) => {
            creating.value = false
            if (made) navigate(`/webhooks/${made.id}`)
          }}
        />
      )}
    </Panel>
  )
}

const columns = (reload: () => void): Column<Source>[] => [
  {
    title: 'Source',
    cell: ({ id, name, scheme }) => (
      <span class="lines">
        <a href={linkTo(`/webhooks/${id}`)}>{name}</a>
        <span class="muted">{SCHEMES[scheme].label}</span>
      </span>
    ),
  },
  { title: 'State', cell: ({ enabled }) => <Enabled enabled={enabled} /> },
  { title: 'Address', minor: true, cell: ({ url }) => <Address url={url} /> },
  { title: 'Changed', minor: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
  ...(may('webhooks:manage')
    ? [
        {
          title: 'Actions',
          minor: true,
          numeric: true,
          cell: (source: Source) => <SourceActions source={source} onChanged={reload} onDeleted={reload} />,
        },
      ]
    : []),
]

const NoSources = ({ create }: { create: () => void }) => (
  <Empty title="No sources yet">
    <p class="muted">
      A source is an address that GitHub, Stripe or any sender that signs can send its events to. A filter
      says which of them count, and a template which job each becomes.
    </p>
    {may('webhooks:manage') && (
      <p>
        <Button icon="plus" onClick={create}>
          Make the first one
        </Button>
      </p>
    )}
  </Empty>
)
