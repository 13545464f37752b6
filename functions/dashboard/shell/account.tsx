import { useSignal } from '@preact/signals'
import type { Org, OwnInvitation, Page } from '../api/answers.ts'
import { get, post } from '../api/api.ts'
import { useResource } from '../api/use-resource.ts'
import { signOut, switchOrg, user } from '../session/session.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
import { Icon } from '../ui/icon.tsx'
import { scheme, toggleScheme } from '../ui/scheme.ts'
import { showDone, showFailure } from '../ui/toasts.tsx'

/** The active organisation, and who is signed in. */
export const Account = () => {
  const orgs = useResource(() => get<Page<Org>>('/orgs', { limit: 100 }))
  const invitations = useResource(() => get<Page<OwnInvitation>>('/orgs/invitations'))
  const creating = useSignal(false)
  const active = user.value?.org_id
  const list = orgs.data.value?.items ?? []
  return (
    <div class="account">
      {invitations.data.value?.items.map((one) => (
        <Invited key={one.id} invitation={one} />
      ))}
      <label class="visually-hidden" for="active-org">
        Active organisation
      </label>
      <div class="org-choice">
        <select
          id="active-org"
          value={active}
          onChange={(event) => {
            const { value } = event.currentTarget
            event.currentTarget.value = active ?? ''
            if (value === NEW) creating.value = true
            else switchOrg(value).catch(showFailure)
          }}
        >
          {list.length === 0 && <option value={active}>…</option>}
          {list.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          <option value={NEW}>New organisation…</option>
        </select>
        <Icon name="down" />
      </div>
      <div class="who">
        <span class="name">
          {user.value?.username}
          <span class="role">{user.value?.role}</span>
        </span>
        <Button
          kind="quiet"
          small
          icon={scheme.value === 'dark' ? 'sun' : 'moon'}
          label={scheme.value === 'dark' ? 'Light colours' : 'Dark colours'}
          onClick={toggleScheme}
        />
        <Button kind="quiet" small icon="out" label="Sign out" onClick={signOut} />
      </div>
      {creating.value && (
        <NewOrg
          onClose={() => {
            creating.value = false
          }}
        />
      )}
    </div>
  )
}

const NEW = 'new'

const Invited = ({ invitation }: { invitation: OwnInvitation }) => (
  <div class="invited">
    <p>
      You are invited to <strong>{invitation.org_name}</strong>.
    </p>
    <Button
      small
      kind="primary"
      onClick={async () => {
        const { org_id } = await post<{ org_id: string }>(`/orgs/invitations/${invitation.id}/accept`)
        await switchOrg(org_id)
        showDone(`You are now in ${invitation.org_name}.`)
      }}
    >
      Join
    </Button>
  </div>
)

const NewOrg = ({ onClose }: { onClose: () => void }) => {
  const name = useSignal('')
  const create = async (): Promise<void> => {
    const { id } = await post<Org>('/orgs', { name: name.value.trim() })
    await switchOrg(id)
  }
  return (
    <FormDialog
      title="New organisation"
      action="Create"
      fields={['/name']}
      onSubmit={create}
      onClose={onClose}
    >
      {(at) => (
        <TextField
          label="Name"
          required
          value={name.value}
          maxLength={100}
          hint="You become its org_admin, and can invite others."
          error={at['/name']}
          onInput={(value) => {
            name.value = value
          }}
        />
      )}
    </FormDialog>
  )
}
