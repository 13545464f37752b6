import { useSignal } from '@preact/signals'
import type { ClosedAccount, OwnAccount } from '../../api/answers.ts'
import { get, remove } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { signOut } from '../../session/session.ts'
import { DataPanel } from '../../ui/data-panel.tsx'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'

export const AccountData = () => (
  <DataPanel
    title="Your data"
    about="Export your account, memberships, sign-ins and API keys as newline-delimited JSON, or delete your account."
    exported={{ path: '/auth/account/export', file: 'smartqueue-account.ndjson' }}
    action="Delete account"
    dialog={(onClose) => <DeleteAccount onClose={onClose} />}
  />
)

const DeleteAccount = ({ onClose }: { onClose: () => void }) => {
  const account = useResource((signal) => get<OwnAccount>('/auth/account', {}, signal))
  const password = useSignal('')
  const submit = async (): Promise<void> => {
    await remove<ClosedAccount>('/auth/account', { password: password.value })
    await signOut()
    showDone('Your account has been deleted.')
  }
  return (
    <FormDialog
      title="Delete your account?"
      action="Delete account"
      danger
      fields={['/password']}
      onSubmit={submit}
      onClose={onClose}
    >
      {(at) => (
        <>
          <p>
            This cannot be undone. Your name, password, sign-ins, API keys and memberships are removed. Your
            jobs in organisations with other members stay there, without your name.
          </p>
          <Orgs
            account={account.data.value}
            fate="deleted"
            before="You are the only member of these organisations. They will be deleted with all their data:"
          />
          <Orgs
            account={account.data.value}
            fate="blocks"
            before="You are the last org_admin of these organisations. Make another member org_admin there first:"
          />
          <TextField
            label="Your password"
            type="password"
            autoComplete="current-password"
            required
            maxLength={256}
            value={password.value}
            error={at['/password']}
            onInput={(value) => {
              password.value = value
            }}
          />
        </>
      )}
    </FormDialog>
  )
}

const Orgs = (props: {
  account: OwnAccount | undefined
  fate: OwnAccount['orgs'][number]['on_deletion']
  before: string
}) => {
  const orgs = props.account?.orgs.filter(({ on_deletion }) => on_deletion === props.fate) ?? []
  return orgs.length === 0 ? null : (
    <p>
      {props.before} <strong>{orgs.map(({ name }) => name).join(', ')}</strong>
    </p>
  )
}
