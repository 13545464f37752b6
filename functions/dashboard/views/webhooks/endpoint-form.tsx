import { useSignal } from '@preact/signals'
import { CALLBACK_EVENTS, type CallbackEvent } from '../../../../db/rules/callbacks.ts'
import type { CallbackEndpoint } from '../../api/answers.ts'
import { patch, post } from '../../api/api.ts'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'

/** Adds an endpoint, or changes the one that is given. */
export const EndpointForm = (props: {
  endpoint?: CallbackEndpoint
  onSaved: () => void
  onClose: () => void
}) => {
  const { endpoint } = props
  const url = useSignal(endpoint?.url ?? '')
  const events = useSignal<readonly CallbackEvent[]>(endpoint?.events ?? CALLBACK_EVENTS)
  const save = async (): Promise<void> => {
    const request = { url: url.value.trim(), events: events.value }
    if (endpoint) await patch(`/callbacks/endpoints/${endpoint.id}`, request)
    else await post('/callbacks/endpoints', request)
    showDone(`${request.url} is told of jobs that end from now on.`)
    props.onSaved()
    props.onClose()
  }
  return (
    <FormDialog
      title={endpoint ? 'Change an endpoint' : 'Add an endpoint'}
      action={endpoint ? 'Save' : 'Add'}
      fields={['/url', '/events']}
      onSubmit={save}
      onClose={props.onClose}
    >
      {(at) => (
        <>
          <TextField
            label="URL"
            type="url"
            required
            literal
            placeholder="https://example.com/hooks/smartqueue"
            hint="It gets a POST for each job that ends. Private addresses are refused unless the operator allows them."
            value={url.value}
            error={at['/url']}
            onInput={(value) => {
              url.value = value
            }}
          />
          <fieldset class="fields">
            <legend>Told of</legend>
            {CALLBACK_EVENTS.map((event) => (
              <label key={event} class="choice">
                <input
                  type="checkbox"
                  checked={events.value.includes(event)}
                  onChange={({ currentTarget }) => {
                    events.value = CALLBACK_EVENTS.filter((one) =>
                      one === event ? currentTarget.checked : events.value.includes(one),
                    )
                  }}
                />
                <code>{event}</code>
              </label>
            ))}
            {at['/events'] && <p class="error">{at['/events']}</p>}
          </fieldset>
        </>
      )}
    </FormDialog>
  )
}
