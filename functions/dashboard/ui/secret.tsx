import { Code } from './code.tsx'

/** What is shown once and never again. */
export const Secret = ({ value, label, note }: { value: string; label: string; note: string }) => (
  <div class="secret">
    <p>
      <strong>Copy it now: it is shown only this once.</strong> {note}
    </p>
    <Code value={value} label={label} />
  </div>
)
