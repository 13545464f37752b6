import { useSignal } from '@preact/signals'
import type { ActiveOrg } from '../../api/answers.ts'
import { remove } from '../../api/api.ts'
import { signOut, user } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'

/** The sign-in is one in this organisation, and ends with the membership. */
export const Leave = ({ org }: { org: ActiveOrg }) => {
  const asking = useSignal(false)
  const leave = async (): Promise<void> => {
    await remove(`/orgs/me/members/${user.peek()?.id}`)
    await signOut()
    showDone(`You have left ${org.name}. Sign in to go on in another organisation.`)
  }
  return (
    <>
      <Button
        icon="out"
        onClick={() => {
          asking.value = true
        }}
      >
        Leave
      </Button>
      {asking.value && (
        <Confirm
          title={`Leave ${org.name}?`}
          action="Leave"
          danger
          onConfirm={leave}
          onClose={() => {
            asking.value = false
          }}
        >
          <p>
            You are signed out, and need a new invitation to come back. Your API keys here and the invitations
            that you made end with your membership. Your jobs stay.
          </p>
        </Confirm>
      )}
    </>
  )
}
