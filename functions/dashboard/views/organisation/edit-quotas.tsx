import { useSignal } from '@preact/signals'
import { QUOTAS, type Quota } from '../../../../db/rules/quotas.ts'
import type { ActiveOrg, Quotas } from '../../api/answers.ts'
import { patch } from '../../api/api.ts'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
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
  const save = async (): Promise<void> => {
    const changed = QUOTAS.filter((quota) => typed.value[quota] !== before[quota])
    if (changed.length > 0) {
      const limits = changed.map((quota) => [quota, limitOf(quota, typed.value[quota])])
      await patch(`/orgs/${props.org.id}/quotas`, Object.fromEntries(limits))
      showDone(`The quotas of ${props.org.name} are changed.`)
      props.onChanged()
    }
    props.onClose()
  }
  return (
    <FormDialog
      title={`Quotas of ${props.org.name}`}
      action="Set quotas"
      fields={QUOTAS.map((quota) => `/${quota}`)}
      onSubmit={save}
      onClose={props.onClose}
    >
      {(at) => (
        <>
          <p class="muted">An empty field is no limit. What already waits or runs stays.</p>
          {QUOTAS.map((quota) => (
            <TextField
              key={quota}
              label={QUOTA_WORDS[quota].field}
              type="number"
              min={0}
              step={QUOTA_WORDS[quota].unit === 1 ? 1 : 'any'}
              value={typed.value[quota]}
              error={at[`/${quota}`]}
              onInput={(value) => {
                typed.value = { ...typed.value, [quota]: value }
              }}
            />
          ))}
        </>
      )}
    </FormDialog>
  )
}
