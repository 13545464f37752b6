import { useEffect } from 'preact/hooks'
import { navigate, route } from './router.ts'
import { trouble, user } from './session/session.ts'
import { SignIn } from './session/sign-in.tsx'
import { Brand } from './shell/brand.tsx'
import { Shell } from './shell/shell.tsx'
import { Failure, Skeleton } from './ui/notes.tsx'
import { Toasts } from './ui/toasts.tsx'

const SIGN_IN = 'sign-in'
const SIGN_UP = 'sign-up'

/** Who is not signed in sees the door, and afterwards where they wanted to go. */
export const App = () => (
  <>
    <Page />
    <Toasts />
  </>
)

const Page = () => {
  const [first = ''] = route.value.path
  const atDoor = first === SIGN_IN || first === SIGN_UP
  const signedIn = Boolean(user.value)
  useEffect(() => {
    if (signedIn && atDoor) navigate('/')
  }, [signedIn, atDoor])
  if (user.value === undefined)
    return trouble.value ? <Closed error={trouble.value} /> : <Skeleton height="100vh" />
  if (user.value === null) return <SignIn isNew={first === SIGN_UP} />
  return <Shell key={user.value.org_id} />
}

/** It is tried again by itself. */
const Closed = ({ error }: { error: Error }) => (
  <main class="door">
    <Brand />
    <Failure error={error} />
  </main>
)
