import { useSignal } from '@preact/signals'
import { MEMBER_ROLES } from '../../../../db/rules/roles.ts'
import type { ActiveOrg, CreatedInvitation } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { Refusal } from '../../api/refusal.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Select, TextField } from '../../ui/field.tsx'
import { Failure } from '../../ui/notes.tsx'
import { Secret } from '../../ui/secret.tsx'
import { Segments } from '../../ui/segments.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { ROLE_WORDS } from './members.tsx'

const WAYS = [
  { value: 'name', label: 'By name' },
  { value: 'link', label: 'By link' },
] as const

/** Invites somebody who has an account by name, anybody else by a link. */
export const Invite = (props: { org: ActiveOrg; onInvited: () => void; onClose: () => void }) => {
  const way = useSignal<'name' | 'link'>('name')
  const username = useSignal('')
  const role = useSignal<string>('user')
  const error = useSignal<unknown>(undefined)
  const link = useSignal<string | undefined>(undefined)
  const isByName = way.value === 'name'
  const isUnknown = isByName && error.value instanceof Refusal && error.value.slug === 'unknown-user'

  const invite = async (): Promise<void> => {
    error.value = undefined
    try {
      const json = { role: role.value, ...(isByName && { username: username.value.trim() }) }
      const made = await post<CreatedInvitation>(`/orgs/${props.org.id}/invite`, json)
      props.onInvited()
      if (made.url) link.value = made.url
      else {
        showDone(`${made.username} is invited, and finds it after the next sign-in.`)
        props.onClose()
      }
    } catch (reason) {
      error.value = reason
    }
  }

  return (
    <Dialog title={`Invite to ${props.org.name}`} onClose={props.onClose}>
      {link.value ? (
        <div class="dialog-body">
          <Secret
            value={link.value}
            label="Link"
            note="Whoever opens it first becomes a member. It is good for 72 hours."
          />
        </div>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            void invite()
          }}
        >
          <div class="dialog-body">
            <Segments
              label="How"
              value={way.value}
              options={WAYS}
              onChange={(value) => {
                way.value = value
              }}
            />
            {isByName ? (
              <TextField
                label="Username"
                literal
                required
                maxLength={64}
                autoComplete="off"
                value={username.value}
                hint="Of somebody who has an account here."
                error={isUnknown ? 'Nobody has this name. Invite them by a link.' : undefined}
                onInput={(value) => {
                  username.value = value
                }}
              />
            ) : (
              <p class="muted">For one person, with or without an account. The link is shown once.</p>
            )}
            <Select
              label="Role"
              value={role.value}
              options={MEMBER_ROLES.toReversed().map((value) => ({
                ...{ value, label: `${value}: ${ROLE_WORDS[value]}` },
              }))}
              onChange={(value) => {
                role.value = value
              }}
            />
            {error.value !== undefined && !isUnknown && <Failure error={error.value} />}
          </div>
          <footer class="dialog-foot">
            <Button kind="primary" type="submit" disabled={isByName && !username.value.trim()}>
              {isByName ? 'Invite' : 'Make a link'}
            </Button>
          </footer>
        </form>
      )}
    </Dialog>
  )
}
