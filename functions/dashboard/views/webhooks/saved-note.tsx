import type { CreatedSource, SavedSource } from '../../api/answers.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'
import { Address } from './address.tsx'
import { Warnings } from './rule-fields.tsx'
import { SCHEMES } from './schemes.ts'

/** What there is to know after a source was saved: its secret, if that was just made, and what its template will do. */
export const SavedNote = ({
  source,
  onClose,
}: {
  source: SavedSource | CreatedSource
  onClose: () => void
}) => {
  if (!('secret' in source)) {
    return (
      <Dialog title={`Saved ${source.name}`} onClose={onClose}>
        <div class="dialog-body">
          <Warnings warnings={source.warnings} />
        </div>
        <footer class="dialog-foot">
          <Button kind="primary" onClick={onClose}>
            I see
          </Button>
        </footer>
      </Dialog>
    )
  }
  return (
    <SecretDialog title={`The secret of ${source.name}`} secret={source.secret} onClose={onClose}>
      <p>{SCHEMES[source.scheme].setUp}</p>
      <Address url={source.url} />
      <Warnings warnings={source.warnings} />
    </SecretDialog>
  )
}
