import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'
import { showFailure } from './toasts.tsx'

type Look = { kind?: 'primary' | 'plain' | 'quiet' | 'danger'; small?: boolean; icon?: IconName }

const classOf = ({ kind = 'plain', small }: Look): string => `button ${kind}${small ? ' small' : ''}`

/**
 * Says that it works while what it started is under way, and cannot be pressed twice. What goes wrong is told, unless the
 * caller handles it.
 */
export const Button = (
  props: Look & {
    children?: ComponentChildren
    /** For a button with nothing but an icon. */
    label?: string
    type?: 'button' | 'submit'
    disabled?: boolean
    busy?: boolean
    title?: string
    /** Of a button that shows and hides something. */
    expanded?: boolean
    onClick?: () => unknown
  },
) => {
  const working = useSignal(false)
  const busy = working.value || props.busy === true
  const click = async (): Promise<void> => {
    if (busy) return
    working.value = true
    try {
      await props.onClick?.()
    } catch (error) {
      showFailure(error)
    } finally {
      working.value = false
    }
  }
  return (
    <button
      type={props.type ?? 'button'}
      class={classOf(props)}
      disabled={props.disabled}
      aria-busy={busy}
      aria-expanded={props.expanded}
      aria-label={props.label}
      title={props.title ?? props.label}
      onClick={props.onClick && (() => void click())}
    >
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </button>
  )
}

export const ButtonLink = (props: Look & { href: string; children: ComponentChildren }) => (
  <a class={classOf(props)} href={props.href}>
    {props.icon && <Icon name={props.icon} />}
    {props.children}
  </a>
)
