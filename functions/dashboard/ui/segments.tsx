/** One of a few, side by side: ranges, tabs of a view. */
export const Segments = <Value extends string>(props: {
  label: string
  value: Value
  options: readonly { value: Value; label: string }[]
  onChange: (value: Value) => void
}) => (
  <fieldset class="segments">
    <legend class="visually-hidden">{props.label}</legend>
    {props.options.map(({ value, label }) => (
      <button
        key={value}
        type="button"
        aria-pressed={value === props.value}
        onClick={() => props.onChange(value)}
      >
        {label}
      </button>
    ))}
  </fieldset>
)
