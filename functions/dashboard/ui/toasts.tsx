import { signal } from '@preact/signals'
import { Refusal } from '../api/refusal.ts'
import { Button } from './button.tsx'

/** Where what was done can be seen. */
type ToastLink = { href: string; text: string }
type Toast = { id: number; kind: 'done' | 'failed'; text: string; link?: ToastLink | undefined }

const SHOWN_MS = 6_000
const toasts = signal<Toast[]>([])
let ids = 0

const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

const show = (kind: Toast['kind'], text: string, link?: ToastLink): void => {
  const id = ++ids
  toasts.value = [...toasts.value.slice(-3), { id, kind, text, link }]
  // What went wrong stays until it was read.
  if (kind === 'done') setTimeout(() => dismiss(id), SHOWN_MS)
}

export const showDone = (text: string, link?: ToastLink): void => show('done', text, link)

export const showFailure = (error: unknown): void => show('failed', describeFailure(error))

/** What happened, and what to do: the API's own words. */
export const describeFailure = (error: unknown): string => {
  if (!(error instanceof Refusal)) {
    console.error(error)
    return 'Something went wrong in this page. Reload it, and try again.'
  }
  const fields = error.errors.map(
    ({ pointer, detail }) => `${pointer.replace(/^#\//, '').replaceAll('/', '.')}: ${detail}`,
  )
  return [error.title, error.message, ...fields].filter(Boolean).join(' – ')
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, kind, text, link }) => (
      <div key={id} class={`toast ${kind}`}>
        <p>
          {text} {link && <a href={link.href}>{link.text}</a>}
        </p>
        <Button kind="quiet" small icon="close" label="Dismiss" onClick={() => dismiss(id)} />
      </div>
    ))}
  </div>
)
