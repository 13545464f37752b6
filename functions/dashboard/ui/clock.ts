import { signal } from '@preact/signals'

/** The present, for relative times: it moves once a second, for all of them together. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1_000)
