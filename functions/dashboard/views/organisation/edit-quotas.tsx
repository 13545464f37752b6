import { useSignal } from '@preact/signals'
import { QUOTAS, type Quota } from '../../../../db/rules/quotas.ts'
import type { ActiveOrg, Quotas } from '../../api/answers.ts'
import { patch } from '../../api/api.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Failure } from '../../ui/notes.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { limitOf, QUOTA_WORDS, typedOf } from './quota-words.ts'

/** For operators: sets what an organisation may use. */
export const EditQuotas = (props: {
  org: ActiveOrg
  quotas: Quotas
  onChanged: () => void
  onClose: () => void
}) => {
  const before = Object.fromEntries(
    QUOTAS.map((quota) => [quota, typedOf(quota, props.quotas[quota].limit)]),
  ) as Record<Quota, string>
  const typed = useSignal(before)
  const error = useSignal<unknown>(undefined)
  const changed = QUOTAS.filter((quota) => typed.value[quota] !== before[quota])
  const isWrong = (quota: Quota): boolean => limitOf(quota, typed.value[quota]) === undefined

  const save = async (): Promise<void> => {
    error.value = undefined
    try {
      const limits = changed.map((quota) => [quota, limitOf(quota, typed.value[quota])])
      await patch(`/orgs/${props.org.id}/quotas`, Object.fromEntries(limits))
      showDone(`The quotas of ${props.org.name} are changed.`)
      props.onChanged()
      props.onClose()
    } catch (reason) {
      error.value = reason
    }
  }

  return (
    <Dialog title={`Quotas of ${props.org.name}`} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <div class="dialog-body">
          <p class="muted">An empty field is no limit. What already waits or runs stays.</p>
          {QUOTAS.map((quota) => (
            <TextField
              key={quota}
              label={QUOTA_WORDS[quota].field}
              type="number"
              min={0}
              step="any"
              value={typed.value[quota]}
              error={isWrong(quota) ? 'Must be a number from 0 on, or empty.' : undefined}
              onInput={(value) => {
                typed.value = { ...typed.value, [quota]: value }
              }}
            />
          ))}
          {error.value !== undefined && <Failure error={error.value} />}
        </div>
        <footer class="dialog-foot">
          <Button kind="primary" type="submit" disabled={changed.length === 0 || changed.some(isWrong)}>
            Set quotas
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}
