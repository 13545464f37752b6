import { useSignal } from '@preact/signals'
import { SCOPES } from '../../../auth/permissions.ts'
import type { CreatedApiKey } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { may } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Select, TextField } from '../../ui/field.tsx'
import { Failure } from '../../ui/notes.tsx'
import { Secret } from '../../ui/secret.tsx'
import { commandFor, ENDS, endOf } from './key-words.ts'
import { ScopeList } from './scope-list.tsx'

/** Makes a key, and shows it once. */
export const NewKey = ({ onMade, onClose }: { onMade: () => void; onClose: () => void }) => {
  const made = useSignal<CreatedApiKey | undefined>(undefined)
  return (
    <Dialog title={made.value ? `The key ${made.value.name}` : 'Make an API key'} onClose={onClose}>
      {made.value ? (
        <Made made={made.value} onClose={onClose} />
      ) : (
        <KeyForm
          onMade={(key) => {
            made.value = key
            onMade()
          }}
        />
      )}
    </Dialog>
  )
}

const KeyForm = ({ onMade }: { onMade: (key: CreatedApiKey) => void }) => {
  const name = useSignal('')
  const scopes = useSignal<readonly string[]>(['jobs:read', 'jobs:submit'])
  const end = useSignal<string>('90')
  const date = useSignal('')
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)

  const make = async (): Promise<void> => {
    busy.value = true
    error.value = undefined
    try {
      const expires_at = endOf(end.value, date.value, Date.now())
      const json = { name: name.value.trim(), scopes: scopes.value, ...(expires_at && { expires_at }) }
      onMade(await post<CreatedApiKey>('/auth/keys', json))
    } catch (reason) {
      error.value = reason
    } finally {
      busy.value = false
    }
  }

  const isReady = name.value.trim() && scopes.value.length > 0 && (end.value !== 'date' || date.value)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void make()
      }}
    >
      <div class="dialog-body">
        <TextField
          label="Name"
          required
          maxLength={100}
          value={name.value}
          hint="What uses it, such as: nightly import."
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
              onInput={(value) => {
                date.value = value
              }}
            />
          )}
        </div>
        {error.value !== undefined && <Failure error={error.value} />}
      </div>
      <footer class="dialog-foot">
        <Button kind="primary" type="submit" busy={busy.value} disabled={!isReady}>
          Make the key
        </Button>
      </footer>
    </form>
  )
}

const Made = ({ made, onClose }: { made: CreatedApiKey; onClose: () => void }) => {
  const command = commandFor(made, location.origin)
  return (
    <>
      <div class="dialog-body">
        <Secret value={made.key} label="Key" note="Keep it as you keep a password." />
        {command && (
          <div>
            <p class="field-title">Try it</p>
            <Code value={command} label="Command" />
          </div>
        )}
      </div>
      <footer class="dialog-foot">
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </footer>
    </>
  )
}
