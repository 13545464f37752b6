import type { ComponentChildren } from 'preact'
import { useEffect, useId } from 'preact/hooks'

/** A titled region of a view. */
export const Panel = (props: {
  title: string
  /** A sentence below the title. */
  about?: ComponentChildren
  actions?: ComponentChildren
  wide?: boolean
  children: ComponentChildren
}) => {
  const id = useId()
  return (
    <section class={`panel${props.wide ? ' wide' : ''}`} aria-labelledby={id}>
      <header class="panel-head">
        <div>
          <h2 id={id}>{props.title}</h2>
          {props.about && <p class="muted">{props.about}</p>}
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  )
}

/** One number, with its unit and what it is about. */
export const Stat = (props: {
  label: string
  value: ComponentChildren
  unit?: string
  note?: ComponentChildren
  href?: string
}) => (
  <div class="stat">
    <dt>{props.href ? <a href={props.href}>{props.label}</a> : props.label}</dt>
    <dd>
      <span class="number">{props.value}</span>
      {props.unit && <span class="unit"> {props.unit}</span>}
      {props.note && <span class="note">{props.note}</span>}
    </dd>
  </div>
)

export const Stats = ({ children }: { children: ComponentChildren }) => <dl class="stats">{children}</dl>

/** The head of a view: its name, also for the tab, and what one can do there. */
export const PageHead = (props: {
  title: string
  about?: ComponentChildren
  children?: ComponentChildren
}) => {
  useEffect(() => {
    document.title = `${props.title} · SmartQueue`
  }, [props.title])
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.about && <p class="muted">{props.about}</p>}
      </div>
      {props.children && <div class="actions">{props.children}</div>}
    </header>
  )
}
