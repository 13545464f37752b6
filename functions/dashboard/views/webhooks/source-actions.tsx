import type { Source } from '../../api/answers.ts'
import { patch, remove } from '../../api/api.ts'
import { ActionButton } from '../../ui/action-button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { useDialog } from '../../ui/use-dialog.ts'
import { RotateSecret } from './rotate-secret.tsx'
import { SourceForm } from './source-form.tsx'

/** What can be done with a source. */
export const SourceActions = (props: {
  source: Source
  spacious?: boolean
  onChanged: () => void
  onDeleted: () => void
}) => {
  const { spacious } = props
  const { id, name, enabled } = props.source
  const dialog = useDialog<'form' | 'secret' | 'delete'>()
  const turn = async (): Promise<void> => {
    await patch(`/webhooks/sources/${id}`, { enabled: !enabled })
    showDone(
      enabled ? `Disabled ${name}: its address answers 404.` : `Enabled ${name}: it takes events again.`,
    )
    props.onChanged()
  }
  return (
    <div class={spacious ? 'actions' : 'row-actions'}>
      <ActionButton
        icon={enabled ? 'pause' : 'play'}
        text={enabled ? 'Disable' : 'Enable'}
        of={name}
        spacious={spacious}
        onClick={turn}
      />
      <ActionButton
        icon="keys"
        text="Replace the secret"
        of={`of ${name}`}
        spacious={spacious}
        onClick={dialog.opens('secret')}
      />
      <ActionButton icon="edit" text="Change" of={name} spacious={spacious} onClick={dialog.opens('form')} />
      <ActionButton
        icon="trash"
        text="Delete"
        of={name}
        spacious={spacious}
        onClick={dialog.opens('delete')}
      />
      {dialog.isOpen('form') && (
        <SourceForm source={props.source} onSaved={props.onChanged} onClose={dialog.close} />
      )}
      {dialog.isOpen('secret') && (
        <RotateSecret
          name={name}
          path={`/webhooks/sources/${id}/rotate`}
          canGive
          onDone={props.onChanged}
          onClose={dialog.close}
        />
      )}
      {dialog.isOpen('delete') && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete source"
          danger
          onClose={dialog.close}
          onConfirm={async () => {
            await remove(`/webhooks/sources/${id}`)
            showDone(`Deleted the source ${name}.`)
            props.onDeleted()
          }}
        >
          <p>
            Its address answers 404 from now on, and its deliveries are not shown any more. Jobs that it has
            made stay.
          </p>
        </Confirm>
      )}
    </div>
  )
}
