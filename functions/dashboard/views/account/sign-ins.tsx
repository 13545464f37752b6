import { useSignal } from '@preact/signals'
import type { SignIn } from '../../api/answers.ts'
import { remove } from '../../api/api.ts'
import { Badge } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { counted } from '../../ui/format.ts'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { useDialog } from '../../ui/use-dialog.ts'
import { deviceOf } from './device.ts'

/** Where the account is signed in. */
export const SignIns = () => {
  const signIns = usePages<SignIn>('/auth/sessions')
  const { isOpen, opens, close } = useDialog<'all'>()
  const ending = useSignal<SignIn | undefined>(undefined)
  const chosen = ending.value
  return (
    <Panel
      title="Sign-ins"
      about="If you do not recognise one, end it and change your password."
      actions={
        <Button small icon="out" onClick={opens('all')}>
          Sign out everywhere else
        </Button>
      }
    >
      <PagedTable
        label="Your sign-ins"
        pages={signIns}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Device', cell: (one) => <Device signIn={one} /> },
          { title: 'Address', minor: true, cell: ({ ip }) => ip ?? <span class="muted">unknown</span> },
          { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
          { title: 'Signed in', minor: true, cell: ({ created_at }) => <Time at={created_at} /> },
          {
            title: 'Actions',
            numeric: true,
            cell: (one) =>
              !one.current && (
                <Button
                  small
                  kind="quiet"
                  icon="trash"
                  label={`End sign-in: ${deviceOf(one.user_agent)}`}
                  onClick={() => {
                    ending.value = one
                  }}
                />
              ),
          },
        ]}
      />
      {chosen && (
        <Confirm
          title="End this sign-in?"
          action="End"
          danger
          onConfirm={async () => {
            await remove(`/auth/sessions/${chosen.id}`)
            showDone('Sign-in ended.')
            signIns.reload()
          }}
          onClose={() => {
            ending.value = undefined
          }}
        >
          <p>{deviceOf(chosen.user_agent)} will be signed out immediately.</p>
        </Confirm>
      )}
      {isOpen('all') && (
        <Confirm
          title="Sign out everywhere else?"
          action="Sign out"
          danger
          onConfirm={async () => {
            const { ended_sessions: ended } = await remove<{ ended_sessions: number }>('/auth/sessions')
            showDone(`${counted(ended, 'sign-in')} ended.`)
            signIns.reload()
          }}
          onClose={close}
        >
          <p>
            All your other sign-ins in all organisations end immediately. This one and your API keys stay
            valid.
          </p>
        </Confirm>
      )}
    </Panel>
  )
}

const Device = ({ signIn: { user_agent, current } }: { signIn: SignIn }) => (
  <span title={user_agent ?? undefined}>
    {deviceOf(user_agent)} {current && <Badge tone="green">current</Badge>}
  </span>
)
