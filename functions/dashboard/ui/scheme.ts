/** Light or dark: as the system has it, or as it was chosen here. */
import { computed, effect, signal } from '@preact/signals'

export type Scheme = 'light' | 'dark'

const KEY = 'smartqueue-scheme'
const system = matchMedia('(prefers-color-scheme: dark)')
const systemScheme = signal<Scheme>(system.matches ? 'dark' : 'light')
const chosen = signal(localStorage.getItem(KEY) as Scheme | null)

system.addEventListener('change', () => {
  systemScheme.value = system.matches ? 'dark' : 'light'
})

export const scheme = computed<Scheme>(() => chosen.value ?? systemScheme.value)

/** Back to the system's is forgetting the choice. */
export const toggleScheme = (): void => {
  const other = scheme.peek() === 'dark' ? 'light' : 'dark'
  chosen.value = other === systemScheme.peek() ? null : other
  if (chosen.value) localStorage.setItem(KEY, chosen.value)
  else localStorage.removeItem(KEY)
}

effect(() => {
  document.documentElement.style.colorScheme = chosen.value ?? 'light dark'
})
