import { useSignal } from '@preact/signals'
import { Button } from './button.tsx'

/** A long text is made when it is copied. */
export const CopyButton = ({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) => {
  const copied = useSignal(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
    copied.value = true
    setTimeout(() => {
      copied.value = false
    }, 2_000)
  }
  return (
    <Button
      kind="quiet"
      small
      icon={copied.value ? 'check' : 'copy'}
      label={copied.value ? 'Copied' : label}
      onClick={copy}
    />
  )
}

/** JSON or any other text as it is, to look at and to copy. */
export const Code = ({ value, label }: { value: unknown; label: string }) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return (
    <div class="code">
      <section
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label={label}
      >
        <pre>
          <code>{text}</code>
        </pre>
      </section>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
    </div>
  )
}

export const ShortId = ({ id }: { id: string }) => (
  <code class="id" title={id}>
    {id.slice(-8)}
  </code>
)
