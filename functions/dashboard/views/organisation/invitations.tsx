import { useSignal } from '@preact/signals'
import type { ActiveOrg, Invitation } from '../../api/answers.ts'
import { remove } from '../../api/api.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Empty } from '../../ui/notes.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { Invite } from './invite.tsx'

/** Who has been asked to join, and has not yet. */
export const Invitations = ({ org }: { org: ActiveOrg }) => {
  const open = usePages<Invitation>('/orgs/me/invitations')
  const inviting = useSignal(false)
  const revoking = useSignal<Invitation | undefined>(undefined)
  const revoked = revoking.value
  return (
    <Panel
      title="Invitations"
      about="Open ones. Each is good for 72 hours, and once."
      actions={
        <Button
          small
          icon="plus"
          onClick={() => {
            inviting.value = true
          }}
        >
          Invite
        </Button>
      }
    >
      <PagedTable
        label="Open invitations"
        pages={open}
        keyOf={({ id }) => id}
        empty={
          <Empty title="Nobody is invited">
            <p class="muted">Invite somebody by name, or make a link for whoever has no account yet.</p>
          </Empty>
        }
        columns={[
          { title: 'Who', cell: whoOf },
          { title: 'Role', cell: ({ role }) => role },
          { title: 'By', minor: true, cell: ({ invited_by }) => invited_by ?? '–' },
          { title: 'Ends', cell: ({ expires_at }) => <Time at={expires_at} /> },
          {
            title: 'Actions',
            numeric: true,
            cell: (one) => (
              <Button
                small
                kind="quiet"
                icon="trash"
                label={`Revoke the invitation of ${whoOf(one)}`}
                onClick={() => {
                  revoking.value = one
                }}
              />
            ),
          },
        ]}
      />
      {inviting.value && (
        <Invite
          org={org}
          onInvited={open.reload}
          onClose={() => {
            inviting.value = false
          }}
        />
      )}
      {revoked && (
        <Confirm
          title="Revoke the invitation?"
          action="Revoke"
          danger
          onConfirm={async () => {
            await remove(`/orgs/me/invitations/${revoked.id}`)
            showDone('The invitation is revoked.')
            open.reload()
          }}
          onClose={() => {
            revoking.value = undefined
          }}
        >
          <p>Nobody can join with it any more: {whoOf(revoked)} needs a new one.</p>
        </Confirm>
      )}
    </Panel>
  )
}

const whoOf = ({ username }: Invitation): string => username ?? 'whoever has the link'
