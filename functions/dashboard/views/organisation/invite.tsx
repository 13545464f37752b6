import { useSignal } from '@preact/signals'
import { MEMBER_ROLES } from '../../../../db/rules/roles.ts'
import type { ActiveOrg, CreatedInvitation } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { Select, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'
import { Segments } from '../../ui/segments.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { ROLE_WORDS } from './members.tsx'

const WAYS = [
  { value: 'name', label: 'By name' },
  { value: 'link', label: 'By link' },
] as const

/** Invites somebody who has an account by name, anybody else by a link. */
export const Invite = (props: { org: ActiveOrg; onInvited: () => void; onClose: () => void }) => {
  const way = useSignal<'name' | 'link'>('name')
  const username = useSignal('')
  const role = useSignal<string>('user')
  const link = useSignal<string | undefined>(undefined)
  const isByName = way.value === 'name'
  const title = `Invite to ${props.org.name}`

  const invite = async (): Promise<void> => {
    const json = { role: role.value, ...(isByName && { username: username.value.trim() }) }
    const made = await post<CreatedInvitation>(`/orgs/${props.org.id}/invite`, json)
    props.onInvited()
    if (made.url) link.value = made.url
    else {
      showDone(`${made.username} is invited, and finds it after the next sign-in.`)
      props.onClose()
    }
  }

  if (link.value) {
    return (
      <SecretDialog title={title} label="Link" secret={link.value} onClose={props.onClose}>
        <p>Whoever opens it first becomes a member. It is good for 72 hours.</p>
      </SecretDialog>
    )
  }
  return (
    <FormDialog
      title={title}
      action={isByName ? 'Invite' : 'Make a link'}
      fields={['/username', '/role']}
      onSubmit={invite}
      onClose={props.onClose}
    >
      {(at) => (
        <>
          <Segments
            label="How"
            value={way.value}
            options={WAYS}
            onChange={(value) => {
              way.value = value
            }}
          />
          {isByName ? (
            <TextField
              label="Username"
              literal
              required
              maxLength={64}
              autoComplete="off"
              value={username.value}
              hint="Of somebody who has an account here. Others are invited by a link."
              error={at['/username']}
              onInput={(value) => {
                username.value = value
              }}
            />
          ) : (
            <p class="muted">For one person, with or without an account. The link is shown once.</p>
          )}
          <Select
            label="Role"
            value={role.value}
            options={MEMBER_ROLES.toReversed().map((value) => ({
              ...{ value, label: `${value}: ${ROLE_WORDS[value]}` },
            }))}
            error={at['/role']}
            onChange={(value) => {
              role.value = value
            }}
          />
        </>
      )}
    </FormDialog>
  )
}
