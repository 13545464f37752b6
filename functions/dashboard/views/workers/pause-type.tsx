import { useSignal } from '@preact/signals'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'

/** Pauses the jobs of one type, while all others go on. */
export const PauseType = (props: { types: readonly string[]; pause: (type: string) => Promise<void> }) => {
  const chosen = useSignal('')
  const type = props.types.includes(chosen.value) ? chosen.value : (props.types[0] ?? '')
  if (!type) return null
  return (
    <div class="beside-button">
      <Select
        label="Pause one type"
        value={type}
        options={props.types}
        onChange={(value) => {
          chosen.value = value
        }}
      />
      <Button icon="pause" onClick={() => props.pause(type)}>
        {`Pause ${type}`}
      </Button>
    </div>
  )
}
