import { useSignal } from '@preact/signals'
import { user } from '../../session/session.ts'
import { PageHead } from '../../ui/panel.tsx'
import { AccountData } from './delete-account.tsx'
import { Password } from './password.tsx'
import { SignIns } from './sign-ins.tsx'

/** The signed-in user's account, the same in every organisation. */
export const View = () => {
  const passwordChanges = useSignal(0)
  return (
    <>
      <PageHead title="Account" about={<strong>{user.value?.username}</strong>} />
      <div class="grid">
        <SignIns key={passwordChanges.value} />
        <Password
          onChange={() => {
            passwordChanges.value++
          }}
        />
        <AccountData />
      </div>
    </>
  )
}
