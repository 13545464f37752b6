import { useSignal } from '@preact/signals'
import { post } from '../../api/api.ts'
import { Refusal } from '../../api/refusal.ts'
import { user } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { count } from '../../ui/format.ts'
import { Failure } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { showDone } from '../../ui/toasts.tsx'

/** Changes the password of whoever is signed in. */
export const Password = () => {
  const current = useSignal('')
  const next = useSignal('')
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  const isWrong = error.value instanceof Refusal && error.value.slug === 'wrong-credentials'

  const change = async (): Promise<void> => {
    busy.value = true
    error.value = undefined
    try {
      const json = { current_password: current.value, new_password: next.value }
      const { ended_sessions: ended } = await post<{ ended_sessions: number }>('/auth/password', json)
      current.value = ''
      next.value = ''
      showDone(`Your password is changed. Other sign-ins that it ended: ${count(ended)}.`)
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
            error={isWrong ? 'This is not your password.' : undefined}
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
            hint="At least 8 characters."
            onInput={(value) => {
              next.value = value
            }}
          />
        </div>
        {error.value !== undefined && !isWrong && <Failure error={error.value} />}
        <div>
          <Button type="submit" busy={busy.value} disabled={!current.value || next.value.length < 8}>
            Change password
          </Button>
        </div>
      </form>
    </Panel>
  )
}
