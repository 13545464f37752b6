import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { linkTo } from '../router.ts'
import { Brand } from '../shell/brand.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Failure } from '../ui/notes.tsx'
import { signIn, signUp } from './session.ts'

const WORDS = {
  in: { title: 'Sign in', action: 'Sign in', other: 'No account yet?', link: 'Create one', to: '/sign-up' },
  up: {
    title: 'Create an account',
    action: 'Create account',
    other: 'Have an account?',
    link: 'Sign in',
    to: '/sign-in',
  },
}

export const SignIn = ({ isNew }: { isNew: boolean }) => {
  const words = isNew ? WORDS.up : WORDS.in
  const username = useSignal('')
  const password = useSignal('')
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${words.title} · SmartQueue`
    error.value = undefined
    head.current?.focus()
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
    <main class="door">
      <Brand />
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h1 ref={head} tabIndex={-1}>
          {words.title}
        </h1>
        {isNew && <p class="muted">You get an organisation of your own, and can join others.</p>}
        {error.value !== undefined && <Failure error={error.value} />}
        <TextField
          label="Username"
          name="username"
          autoComplete="username"
          literal
          required
          maxLength={256}
          value={username.value}
          onInput={(value) => {
            username.value = value
          }}
        />
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete={isNew ? 'new-password' : 'current-password'}
          hint={isNew ? 'At least 8 characters.' : undefined}
          required
          maxLength={256}
          value={password.value}
          onInput={(value) => {
            password.value = value
          }}
        />
        <Button kind="primary" type="submit" busy={busy.value}>
          {words.action}
        </Button>
        <p class="muted">
          {words.other} <a href={linkTo(words.to)}>{words.link}</a> · <a href="/docs">API reference</a>
        </p>
      </form>
    </main>
  )
}
