import { useSignal } from '@preact/signals'
import { SCOPES } from '../../../auth/permissions.ts'
import type { CreatedApiKey } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { may } from '../../session/session.ts'
import { Code } from '../../ui/code.tsx'
import { Select, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'
import { commandFor, ENDS, endOf } from './key-words.ts'
import { ScopeList } from './scope-list.tsx'

/** Makes a key, and shows it once. */
export const NewKey = ({ onMade, onClose }: { onMade: () => void; onClose: () => void }) => {
  const made = useSignal<CreatedApiKey | undefined>(undefined)
  const name = useSignal('')
  const scopes = useSignal<readonly string[]>(['jobs:read', 'jobs:submit'])
  const end = useSignal<string>('90')
  const date = useSignal('')
  const make = async (): Promise<void> => {
    const expires_at = endOf(end.value, date.value, Date.now())
    const json = { name: name.value.trim(), scopes: scopes.value, ...(expires_at && { expires_at }) }
    made.value = await post<CreatedApiKey>('/auth/keys', json)
    onMade()
  }
  if (made.value) return <Made made={made.value} onClose={onClose} />
  return (
    <FormDialog
      title="Make an API key"
      action="Make the key"
      fields={['/name', '/scopes', '/expires_at']}
      onSubmit={make}
      onClose={onClose}
    >
      {(at) => (
        <>
          <TextField
            label="Name"
            required
            maxLength={100}
            value={name.value}
            hint="What uses it, such as: nightly import."
            error={at['/name']}
            onInput={(value) => {
              name.value = value
            }}
          />
          <ScopeList
            scopes={SCOPES.filter(may)}
            chosen={scopes.value}
            onChange={(chosen) => {
              scopes.value = chosen
            }}
          />
          <div class="form-row">
            <Select
              label="Ends"
              value={end.value}
              options={ENDS}
              error={end.value === 'date' ? undefined : at['/expires_at']}
              onChange={(value) => {
                end.value = value
              }}
            />
            {end.value === 'date' && (
              <TextField
                label="On"
                type="datetime-local"
                required
                value={date.value}
                error={at['/expires_at']}
                onInput={(value) => {
                  date.value = value
                }}
              />
            )}
          </div>
        </>
      )}
    </FormDialog>
  )
}

const Made = ({ made, onClose }: { made: CreatedApiKey; onClose: () => void }) => {
  const command = commandFor(made, location.origin)
  return (
    <SecretDialog title={`The key ${made.name}`} label="Key" secret={made.key} onClose={onClose}>
      {command && (
        <div>
          <p class="field-title">Try it</p>
          <Code value={command} label="Command" />
        </div>
      )}
    </SecretDialog>
  )
}
