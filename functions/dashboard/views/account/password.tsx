import { useSignal } from '@preact/signals'
import { SHORTEST_PASSWORD } from '../../../settings.ts'
import type { PasswordChanged } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { user } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { faultsFor } from '../../ui/faults.ts'
import { TextField } from '../../ui/field.tsx'
import { counted } from '../../ui/format.ts'
import { Failure } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { showDone } from '../../ui/toasts.tsx'

/** Changes the password of whoever is signed in. */
export const Password = ({ onChange }: { onChange: () => void }) => {
  const current = useSignal('')
  const next = useSignal('')
  const revokesKeys = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  const { at, rest } = faultsFor(error.value, ['/current_password', '/new_password'])

  const change = async (): Promise<void> => {
    busy.value = true
    error.value = undefined
    try {
      const { ended_sessions, revoked_keys } = await post<PasswordChanged>('/auth/password', {
        current_password: current.value,
        new_password: next.value,
        revoke_keys: revokesKeys.value,
      })
      current.value = ''
      next.value = ''
      revokesKeys.value = false
      showDone(
        `Your password was changed. Ended ${counted(ended_sessions, 'other sign-in')} and revoked ${counted(revoked_keys, 'API key')}.`,
      )
      onChange()
    } catch (reason) {
      error.value = reason
    } finally {
      busy.value = false
    }
  }

  return (
    <Panel title="Your password" about="Changing it ends all your other sign-ins.">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void change()
        }}
      >
        {/* For password managers: whose it is. */}
        <input hidden type="text" autoComplete="username" readOnly value={user.value?.username ?? ''} />
        <div class="form-row">
          <TextField
            label="Current password"
            type="password"
            autoComplete="current-password"
            required
            maxLength={256}
            value={current.value}
            error={at['/current_password'] && 'The password is wrong.'}
            onInput={(value) => {
              current.value = value
            }}
          />
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            required
            maxLength={256}
            value={next.value}
            hint={`At least ${SHORTEST_PASSWORD} characters, and not a common password.`}
            error={at['/new_password']}
            onInput={(value) => {
              next.value = value
            }}
          />
        </div>
        <label class="choice">
          <input
            type="checkbox"
            checked={revokesKeys.value}
            onChange={(event) => {
              revokesKeys.value = event.currentTarget.checked
            }}
          />
          Also revoke all my API keys, in all organisations
        </label>
        {rest !== undefined && <Failure error={rest} />}
        <div>
          <Button
            type="submit"
            busy={busy.value}
            disabled={!current.value || next.value.length < SHORTEST_PASSWORD}
          >
            Change password
          </Button>
        </div>
      </form>
    </Panel>
  )
}
