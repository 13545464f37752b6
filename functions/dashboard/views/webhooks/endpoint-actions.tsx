import type { CallbackEndpoint } from '../../api/answers.ts'
import { patch, post, remove } from '../../api/api.ts'
import { linkTo } from '../../router.ts'
import { ActionButton } from '../../ui/action-button.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { useDialog } from '../../ui/use-dialog.ts'
import { EndpointForm } from './endpoint-form.tsx'

/** What can be done with an endpoint. */
export const EndpointActions = (props: { endpoint: CallbackEndpoint; onChanged: () => void }) => {
  const { id, url, disabled_at } = props.endpoint
  const isDisabled = disabled_at !== null
  const dialog = useDialog<'form' | 'delete'>()
  const test = async (): Promise<void> => {
    const { job_id } = await post<{ job_id: string }>(`/callbacks/endpoints/${id}/test`)
    showDone('A test event is on its way.', {
      href: linkTo(`/jobs/${job_id}`),
      text: 'See what becomes of it',
    })
  }
  const turn = async (): Promise<void> => {
    await patch(`/callbacks/endpoints/${id}`, { disabled: !isDisabled })
    showDone(isDisabled ? `${url} is told again.` : `${url} is told no more.`)
    props.onChanged()
  }
  return (
    <div class="row-actions">
      <Button small title={`Send a test event to ${url}`} onClick={test}>
        Test
      </Button>
      <ActionButton
        icon={isDisabled ? 'play' : 'pause'}
        text={isDisabled ? 'Enable' : 'Disable'}
        of={url}
        onClick={turn}
      />
      <ActionButton icon="edit" text="Change" of={url} onClick={dialog.opens('form')} />
      <ActionButton icon="trash" text="Delete" of={url} onClick={dialog.opens('delete')} />
      {dialog.isOpen('form') && (
        <EndpointForm endpoint={props.endpoint} onSaved={props.onChanged} onClose={dialog.close} />
      )}
      {dialog.isOpen('delete') && (
        <Confirm
          title="Delete this endpoint?"
          action="Delete endpoint"
          danger
          onClose={dialog.close}
          onConfirm={async () => {
            await remove(`/callbacks/endpoints/${id}`)
            showDone(`Deleted the endpoint ${url}.`)
            props.onChanged()
          }}
        >
          <p>
            <code>{url}</code> is not told of jobs that end from now on. What is on its way is still sent, and
            jobs that name it as their callback_url tell it again.
          </p>
        </Confirm>
      )}
    </div>
  )
}
