import type { ComponentChildren } from 'preact'
import { Button } from './button.tsx'
import { Code } from './code.tsx'
import { Dialog } from './dialog.tsx'

/** A secret that was just made, and is not shown again. */
export const SecretDialog = (props: {
  title: string
  secret: string
  /** Where it goes, and what else there is to do. */
  children?: ComponentChildren
  onClose: () => void
}) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <div class="dialog-body">
      <p class="notice">
        Copy the secret now and keep it safe: it is shown only this once. Should it get lost, make a new one.
      </p>
      <Code label="Secret" value={props.secret} />
      {props.children}
    </div>
    <footer class="dialog-foot">
      <Button kind="primary" onClick={props.onClose}>
        I have copied it
      </Button>
    </footer>
  </Dialog>
)
