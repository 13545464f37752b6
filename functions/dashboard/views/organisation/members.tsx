import { useSignal } from '@preact/signals'
import { MEMBER_ROLES, type MemberRole } from '../../../../db/rules/roles.ts'
import type { Member } from '../../api/answers.ts'
import { patch, remove } from '../../api/api.ts'
import { may, renew, user } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { showDone, showFailure } from '../../ui/toasts.tsx'

export const ROLE_WORDS: Record<MemberRole, string> = {
  user: 'submits and manages jobs',
  org_admin: 'also manages members, webhooks and the queue',
}

/** Who is in the organisation. An org_admin changes roles, and removes. */
export const Members = ({ onChange }: { onChange: () => void }) => {
  const members = usePages<Member>('/orgs/me/members')
  const leaving = useSignal<Member | undefined>(undefined)
  const changed = (): void => {
    members.reload()
    onChange()
  }
  const columns: Column<Member>[] = [
    { title: 'Name', cell: (member) => <Name member={member} /> },
    { title: 'Role', cell: (member) => <Role member={member} onChange={changed} /> },
    { title: 'Joined', minor: true, cell: ({ joined_at }) => <Time at={joined_at} /> },
  ]
  if (may('org:manage')) {
    columns.push({
      title: 'Actions',
      numeric: true,
      cell: (member) =>
        member.user_id !== user.value?.id && (
          <Button
            small
            kind="quiet"
            icon="trash"
            label={`Remove ${member.username}`}
            onClick={() => {
              leaving.value = member
            }}
          />
        ),
    })
  }
  const gone = leaving.value
  return (
    <Panel title="Members" about={`user: ${ROLE_WORDS.user}. org_admin: ${ROLE_WORDS.org_admin}.`}>
      <PagedTable
        label="Members and their roles"
        pages={members}
        columns={columns}
        keyOf={({ user_id }) => user_id}
      />
      {gone && (
        <Confirm
          title={`Remove ${gone.username}?`}
          action="Remove"
          danger
          onConfirm={async () => {
            await remove(`/orgs/me/members/${gone.user_id}`)
            showDone(`${gone.username} is no longer a member.`)
            changed()
          }}
          onClose={() => {
            leaving.value = undefined
          }}
        >
          <p>
            Their sign-ins in this organisation end at once, and so do their API keys and the invitations that
            they made. Their jobs stay.
          </p>
        </Confirm>
      )}
    </Panel>
  )
}

const Name = ({ member }: { member: Member }) => (
  <>
    {member.username}
    {member.user_id === user.value?.id && <span class="muted"> (you)</span>}
  </>
)

const Role = ({ member, onChange }: { member: Member; onChange: () => void }) => {
  if (!may('org:manage')) return <>{member.role}</>
  const change = async (select: HTMLSelectElement): Promise<void> => {
    try {
      await patch(`/orgs/me/members/${member.user_id}`, { role: select.value })
      // Whoever changes their own role has it in the next token.
      if (member.user_id === user.peek()?.id) await renew()
      showDone(`${member.username} is now ${select.value}.`)
      onChange()
    } catch (error) {
      select.value = member.role
      showFailure(error)
    }
  }
  return (
    <select
      class="compact"
      aria-label={`Role of ${member.username}`}
      value={member.role}
      onChange={(event) => void change(event.currentTarget)}
    >
      {MEMBER_ROLES.map((role) => (
        <option key={role} value={role}>
          {role}
        </option>
      ))}
    </select>
  )
}
