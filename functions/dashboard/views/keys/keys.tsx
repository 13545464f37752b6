import { useSignal } from '@preact/signals'
import type { ApiKey } from '../../api/answers.ts'
import { remove } from '../../api/api.ts'
import { may, user } from '../../session/session.ts'
import { Badge, Tags } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { now } from '../../ui/clock.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { useNames } from '../../ui/names.ts'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { NewKey } from './new-key.tsx'

/** What programs sign in with. */
export const View = () => {
  const keys = usePages<ApiKey>('/auth/keys')
  const nameOf = useNames()
  const making = useSignal(false)
  const revoking = useSignal<ApiKey | undefined>(undefined)
  const revoked = revoking.value
  const seesAll = may('org:manage')
  const owner: Column<ApiKey> = {
    title: 'Acts for',
    minor: true,
    cell: ({ user_id }) =>
      user_id === user.value?.id ? 'you' : (nameOf(user_id) ?? `user ${user_id.slice(-8)}`),
  }
  const columns: Column<ApiKey>[] = [
    { title: 'Name', cell: ({ name }) => <span class="key-name">{name}</span> },
    { title: 'Key', minor: true, cell: ({ prefix }) => <code class="id">{prefix}…</code> },
    ...(seesAll ? [owner] : []),
    { title: 'Scopes', cell: ({ scopes }) => <Tags tags={scopes} /> },
    { title: 'Made', minor: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      title: 'Last used',
      minor: true,
      cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : 'never'),
    },
    { title: 'Ends', cell: (key) => <End apiKey={key} /> },
    {
      title: 'Actions',
      numeric: true,
      cell: (key) =>
        key.revoked_at === null && (
          <Button
            small
            kind="quiet"
            icon="trash"
            label={`Revoke ${key.name}`}
            onClick={() => {
              revoking.value = key
            }}
          />
        ),
    },
  ]
  return (
    <>
      <PageHead
        title="API keys"
        about="For programs: they act for you in this organisation, with what you give them."
      >
        <Button
          kind="primary"
          icon="plus"
          onClick={() => {
            making.value = true
          }}
        >
          Make a key
        </Button>
      </PageHead>
      <Panel title={seesAll ? 'Keys of all members' : 'Your keys'}>
        <PagedTable
          label="API keys"
          pages={keys}
          columns={columns}
          keyOf={({ id }) => id}
          empty={
            <Empty title="There is no API key yet">
              <p class="muted">Make one for each program, so that you can revoke them one by one.</p>
            </Empty>
          }
        />
      </Panel>
      {making.value && (
        <NewKey
          onMade={keys.reload}
          onClose={() => {
            making.value = false
          }}
        />
      )}
      {revoked && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          action="Revoke"
          danger
          onConfirm={async () => {
            await remove(`/auth/keys/${revoked.id}`)
            showDone(`${revoked.name} is revoked.`)
            keys.reload()
          }}
          onClose={() => {
            revoking.value = undefined
          }}
        >
          <p>
            Programs that use <code>{revoked.prefix}…</code> are refused from now on. This cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  )
}

const End = ({ apiKey: { revoked_at, expires_at } }: { apiKey: ApiKey }) => {
  if (revoked_at) {
    return (
      <>
        <Badge tone="red">revoked</Badge> <Time at={revoked_at} />
      </>
    )
  }
  if (!expires_at) return <>when revoked</>
  const isOver = Date.parse(expires_at) <= now.value
  return (
    <>
      {isOver && <Badge tone="amber">expired</Badge>} <Time at={expires_at} />
    </>
  )
}
