import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { Failure } from './notes.tsx'

/** A modal dialog of the browser's own: focus stays in it, Escape closes it, and focus returns to where it was. */
export const Dialog = (props: {
  title: string
  onClose: () => void
  wide?: boolean
  children: ComponentChildren
}) => {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    firstField(element.current)?.focus()
    // A dialog that is taken away without being closed does not give the focus back.
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog ref={element} class={props.wide ? 'wide' : ''} aria-labelledby={id} onClose={props.onClose}>
      <header class="dialog-head">
        <h2 id={id}>{props.title}</h2>
        <Button kind="quiet" icon="close" label="Close" onClick={() => element.current?.close()} />
      </header>
      {props.children}
    </dialog>
  )
}

/** Where one begins, and not with the button that closes it. */
const firstField = (dialog: HTMLElement | null): HTMLElement | null | undefined =>
  dialog?.querySelector<HTMLElement>('.dialog-body :is(input, select, textarea)') ??
  dialog?.querySelector<HTMLElement>('.dialog-body button')

/** Asks before something that cannot be undone, or that concerns many. */
export const Confirm = (props: {
  title: string
  children: ComponentChildren
  action: string
  danger?: boolean
  onConfirm: () => Promise<unknown>
  onClose: () => void
}) => {
  const error = useSignal<unknown>(undefined)
  const confirm = async (): Promise<void> => {
    try {
      await props.onConfirm()
      props.onClose()
    } catch (reason) {
      error.value = reason
    }
  }
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div class="dialog-body">
        {props.children}
        {error.value !== undefined && <Failure error={error.value} />}
      </div>
      <footer class="dialog-foot">
        <Button onClick={props.onClose}>Cancel</Button>
        <Button kind={props.danger ? 'danger' : 'primary'} onClick={confirm}>
          {props.action}
        </Button>
      </footer>
    </Dialog>
  )
}
