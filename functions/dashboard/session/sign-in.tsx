import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type RegistrationMode, SHORTEST_PASSWORD } from '../../settings.ts'
import type { RegistrationPolicy } from '../api/answers.ts'
import { send } from '../api/send.ts'
import { useResource } from '../api/use-resource.ts'
import { linkTo } from '../router.ts'
import { Brand } from '../shell/brand.tsx'
import { Button } from '../ui/button.tsx'
import { faultsFor } from '../ui/faults.ts'
import { TextField } from '../ui/field.tsx'
import { Failure } from '../ui/notes.tsx'
import { signIn, signUp } from './session.ts'

const TITLES = { in: 'Sign in', up: 'Create an account' }

/** Explains why there is no registration form. */
const NOT_OPEN: Record<Exclude<RegistrationMode, 'open'>, string> = {
  invite:
    'You need an invitation to create an account. Ask a member of your organisation for a link and open it.',
  closed: 'Only the operator of this system can create accounts. Ask them for one.',
}

export const SignIn = ({ isNew }: { isNew: boolean }) => {
  const title = isNew ? TITLES.up : TITLES.in
  const policy = useResource((signal) => send<RegistrationPolicy>('/auth/registration', { signal }))
  const registration = policy.data.value?.registration
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · SmartQueue`
    head.current?.focus()
  }, [isNew])
  const isRefused = isNew && registration !== undefined && registration !== 'open'
  return (
    <main class="door">
      <Brand />
      <div class="door-panel">
        <h1 ref={head} tabIndex={-1}>
          {title}
        </h1>
        {isRefused ? <p>{NOT_OPEN[registration]}</p> : <Credentials isNew={isNew} />}
        <p class="muted">
          {isNew && (
            <>
              Have an account? <a href={linkTo('/sign-in')}>Sign in</a> ·{' '}
            </>
          )}
          {!isNew && registration === 'open' && (
            <>
              No account yet? <a href={linkTo('/sign-up')}>Create one</a> ·{' '}
            </>
          )}
          <a href="/docs">API reference</a>
        </p>
      </div>
    </main>
  )
}

const Credentials = ({ isNew }: { isNew: boolean }) => {
  const username = useSignal('')
  const password = useSignal('')
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  const { at, rest } = faultsFor(error.value, ['/username', '/password'])
  useEffect(() => {
    error.value = undefined
  }, [isNew])

  const submit = async (): Promise<void> => {
    busy.value = true
    error.value = undefined
    try {
      await (isNew ? signUp : signIn)({ username: username.value.trim(), password: password.value })
    } catch (reason) {
      error.value = reason
    } finally {
      busy.value = false
    }
  }

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      {isNew && <p class="muted">You get a personal organisation and can join others.</p>}
      {rest !== undefined && <Failure error={rest} />}
      <TextField
        label="Username"
        name="username"
        autoComplete="username"
        literal
        required
        maxLength={256}
        value={username.value}
        error={at['/username']}
        onInput={(value) => {
          username.value = value
        }}
      />
      <TextField
        label="Password"
        name="password"
        type="password"
        autoComplete={isNew ? 'new-password' : 'current-password'}
        hint={isNew ? `At least ${SHORTEST_PASSWORD} characters, and not a common password.` : undefined}
        required
        maxLength={256}
        value={password.value}
        error={at['/password']}
        onInput={(value) => {
          password.value = value
        }}
      />
      <Button kind="primary" type="submit" busy={busy.value}>
        {isNew ? 'Create account' : 'Sign in'}
      </Button>
    </form>
  )
}
