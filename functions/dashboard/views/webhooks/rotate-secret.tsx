import { useSignal } from '@preact/signals'
import { post } from '../../api/api.ts'
import { Select, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { seconds } from '../../ui/format.ts'
import { SecretDialog } from '../../ui/secret-dialog.tsx'

const KEEP = [3_600, 86_400, 604_800, 2_592_000].map((value) => ({
  value: String(value),
  label: `For ${seconds(value)} more`,
}))

/** Puts a new secret in the place of the one so far, and shows it. */
export const RotateSecret = (props: {
  name: string
  path: string
  /** There is one already, which may stay good for a while. */
  isFirst?: boolean
  /** The sender may have made the new one. */
  canGive?: boolean
  onDone: () => void
  onClose: () => void
}) => {
  const keep = useSignal('86400')
  const given = useSignal('')
  const made = useSignal<string | undefined>(undefined)
  if (made.value !== undefined) {
    return (
      <SecretDialog title={`The secret of ${props.name}`} secret={made.value} onClose={props.onClose}>
        {!props.isFirst && (
          <p>
            {keep.value === '0'
              ? 'The one before has ended: nothing that goes by it is good any more.'
              : `The one before is good for ${seconds(Number(keep.value))} more: change over by then.`}
          </p>
        )}
      </SecretDialog>
    )
  }
  return (
    <FormDialog
      title={props.isFirst ? `Make a secret for ${props.name}` : `Replace the secret of ${props.name}`}
      action={props.isFirst ? 'Make a secret' : 'Replace the secret'}
      fields={['/secret', '/keep_previous_seconds']}
      onClose={props.onClose}
      onSubmit={async () => {
        const { secret } = await post<{ secret: string }>(props.path, {
          keep_previous_seconds: Number(keep.value),
          ...(given.value.trim() && { secret: given.value.trim() }),
        })
        made.value = secret
        props.onDone()
      }}
    >
      {(at) => (
        <>
          {props.isFirst && <p>It is made for you, and shown once.</p>}
          {!props.isFirst && (
            <Select
              label="The secret so far is good"
              hint="If it has leaked, end it at once."
              value={keep.value}
              options={[{ value: '0', label: 'No longer: it ends at once' }, ...KEEP]}
              error={at['/keep_previous_seconds']}
              onChange={(value) => {
                keep.value = value
              }}
            />
          )}
          {props.canGive && (
            <TextField
              label="New secret"
              literal
              autoComplete="off"
              hint="If the sender has made one. Empty: one is made."
              value={given.value}
              error={at['/secret']}
              onInput={(value) => {
                given.value = value
              }}
            />
          )}
        </>
      )}
    </FormDialog>
  )
}
