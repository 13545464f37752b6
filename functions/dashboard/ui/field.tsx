import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type Around = { label: string; hint?: ComponentChildren; error?: string | undefined }

const Frame = ({
  label,
  hint,
  error,
  id,
  children,
}: Around & { id: string; children: ComponentChildren }) => (
  <div class={`field${error ? ' wrong' : ''}`}>
    <label for={id}>{label}</label>
    {children}
    {hint && (
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
    )}
    {error && (
      <p class="error" id={`${id}-error`}>
        {error}
      </p>
    )}
  </div>
)

const describedBy = ({ hint, error }: Around, id: string) => ({
  'aria-invalid': Boolean(error),
  'aria-describedby': [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || undefined,
})

type TextProps = Around & {
  value: string
  onInput: (value: string) => void
  type?: 'text' | 'password' | 'number' | 'datetime-local' | 'url' | 'search'
  name?: string
  autoComplete?: string
  placeholder?: string
  required?: boolean
  disabled?: boolean
  /** Ids of things are no words of a language. */
  literal?: boolean
  list?: string
  min?: number | string
  max?: number | string
  step?: number | string
  maxLength?: number
}

export const TextField = ({
  label,
  hint,
  error,
  value,
  onInput,
  literal,
  type = 'text',
  ...rest
}: TextProps) => {
  const id = useId()
  return (
    <Frame label={label} hint={hint} error={error} id={id}>
      <input
        {...({ ...rest, type } as object)}
        {...(literal && { autocapitalize: 'none', spellcheck: false })}
        id={id}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
        {...describedBy({ label, hint, error }, id)}
      />
    </Frame>
  )
}

type AreaProps = Around & { value: string; onInput: (value: string) => void; rows?: number; mono?: boolean }

export const TextArea = ({ label, hint, error, value, onInput, rows = 8, mono }: AreaProps) => {
  const id = useId()
  return (
    <Frame label={label} hint={hint} error={error} id={id}>
      <textarea
        id={id}
        rows={rows}
        class={mono ? 'mono' : ''}
        spellcheck={!mono}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
        {...describedBy({ label, hint, error }, id)}
      />
    </Frame>
  )
}

type Choice = string | { value: string; label: string }
type SelectProps = Around & {
  value: string
  onChange: (value: string) => void
  options: readonly Choice[]
  disabled?: boolean
}

export const Select = ({ label, hint, error, value, onChange, options, disabled }: SelectProps) => {
  const id = useId()
  return (
    <Frame label={label} hint={hint} error={error} id={id}>
      <select
        id={id}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.value)}
        {...describedBy({ label, hint, error }, id)}
      >
        {options.map((option) => {
          const { value, label } = typeof option === 'string' ? { value: option, label: option } : option
          return (
            <option key={value} value={value}>
              {label}
            </option>
          )
        })}
      </select>
    </Frame>
  )
}
