import { useSignal } from '@preact/signals'
import type { ActiveOrg, ClosedOrg } from '../../api/answers.ts'
import { remove } from '../../api/api.ts'
import { renew } from '../../session/session.ts'
import { DataPanel } from '../../ui/data-panel.tsx'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'

export const OrgData = ({ org }: { org: ActiveOrg }) => (
  <DataPanel
    title="Data"
    about="Export everything as newline-delimited JSON, without secrets, or delete the organisation."
    exported={{ path: '/orgs/me/export', file: 'smartqueue-organisation.ndjson' }}
    action="Delete organisation"
    dialog={(onClose) => <DeleteOrg org={org} onClose={onClose} />}
  />
)

const DeleteOrg = ({ org, onClose }: { org: ActiveOrg; onClose: () => void }) => {
  const name = useSignal('')
  const password = useSignal('')
  const submit = async (): Promise<void> => {
    await remove<ClosedOrg>('/orgs/me', { name: name.value, password: password.value })
    onClose()
    // The sign-in continues in another organisation.
    await renew()
    showDone(`${org.name} was deleted. Its data is being removed.`)
  }
  return (
    <FormDialog
      title={`Delete ${org.name}?`}
      action="Delete organisation"
      danger
      fields={['/name', '/password']}
      onSubmit={submit}
      onClose={onClose}
    >
      {(at) => (
        <>
          <p>
            This cannot be undone. All members lose access immediately, API keys and webhooks stop working,
            and running jobs are stopped. Then all jobs, results, logs, schedules and the audit log are
            removed.
          </p>
          <TextField
            label={`Type the name of the organisation: ${org.name}`}
            required
            autoComplete="off"
            maxLength={100}
            value={name.value}
            error={at['/name']}
            onInput={(value) => {
              name.value = value
            }}
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
