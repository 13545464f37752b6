import type { ComponentChildren } from 'preact'
import { Button } from './button.tsx'
import { Code } from './code.tsx'
import { Dialog } from './dialog.tsx'

/** What was just made, and is not shown again: a secret, a key, a link. */
export const SecretDialog = (props: {
  title: string
  label?: 'Secret' | 'Key' | 'Link'
  secret: string
  /** Where it goes, and what else there is to do. */
  children?: ComponentChildren
  onClose: () => void
}) => {
  const { label = 'Secret' } = props
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div class="dialog-body">
        <p class="notice">
          Copy the {label.toLowerCase()} now and keep it safe: it is shown only this once. Should it get lost,
          make a new one.
        </p>
        <Code label={label} value={props.secret} />
        {props.children}
      </div>
      <footer class="dialog-foot">
        <Button kind="primary" onClick={props.onClose}>
          I have copied it
        </Button>
      </footer>
    </Dialog>
  )
}
