import { useSignal } from '@preact/signals'
import { QUOTAS, type Quota, WEIGHT } from '../../../../db/rules/quotas.ts'
import type { ActiveOrg, Quotas } from '../../api/answers.ts'
import { patch } from '../../api/api.ts'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { limitOf, QUOTA_WORDS, typedOf } from './quota-words.ts'

const FIELDS = [...QUOTAS, 'weight'] as const

/** For operators: sets what an organisation may use. */
export const EditQuotas = (props: {
  org: ActiveOrg
  quotas: Quotas
  onChanged: () => void
  onClose: () => void
}) => {
  const limits = QUOTAS.map((quota) => [quota, typedOf(quota, props.quotas[quota].limit)])
  const before = {
    ...(Object.fromEntries(limits) as Record<Quota, string>),
    weight: String(props.quotas.weight),
  }
  const typed = useSignal(before)
  const save = async (): Promise<void> => {
    const changed = FIELDS.filter((field) => typed.value[field] !== before[field])
    if (changed.length > 0) {
      const values = changed.map((field) => {
        const text = typed.value[field]
        return [field, field === 'weight' ? Number(text) : limitOf(field, text)]
      })
      await patch(`/orgs/${props.org.id}/quotas`, Object.fromEntries(values))
      showDone(`The quotas of ${props.org.name} are changed.`)
      props.onChanged()
    }
    props.onClose()
  }
  return (
    <FormDialog
      title={`Quotas of ${props.org.name}`}
      action="Set quotas"
      fields={FIELDS.map((field) => `/${field}`)}
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
          <TextField
            label="Weight"
            type="number"
            {...WEIGHT}
            step="any"
            hint="The share of the workers' time, relative to the weights of other organisations."
            value={typed.value.weight}
            error={at['/weight']}
            onInput={(weight) => {
              typed.value = { ...typed.value, weight }
            }}
          />
        </>
      )}
    </FormDialog>
  )
}
