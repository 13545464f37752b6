import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { faultsFor } from './faults.ts'
import { Failure } from './notes.tsx'

/**
 * A form over the page. What the API refuses is said at the fields that `fields` points to, and the rest below them; what was
 * typed stays. Who submits closes it, since something may be left to show.
 */
export const FormDialog = (props: {
  title: string
  action: string
  wide?: boolean
  danger?: boolean
  fields: readonly string[]
  onSubmit: () => Promise<unknown>
  onClose: () => void
  children: (at: Record<string, string | undefined>) => ComponentChildren
}) => {
  const error = useSignal<unknown>(undefined)
  const busy = useSignal(false)
  const form = useRef<HTMLFormElement>(null)
  const { at, rest } = faultsFor(error.value, props.fields)
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [error.value])
  const submit = async (): Promise<void> => {
    if (busy.value) return
    busy.value = true
    error.value = undefined
    try {
      await props.onSubmit()
    } catch (reason) {
      error.value = reason
    } finally {
      busy.value = false
    }
  }
  return (
    <Dialog title={props.title} wide={props.wide === true} onClose={props.onClose}>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <div class="dialog-body">
          {props.children(at)}
          {rest !== undefined && <Failure error={rest} />}
        </div>
        <footer class="dialog-foot">
          <Button onClick={props.onClose}>Cancel</Button>
          <Button kind={props.danger ? 'danger' : 'primary'} type="submit" busy={busy.value}>
            {props.action}
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}
