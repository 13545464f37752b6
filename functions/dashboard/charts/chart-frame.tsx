import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { Button } from '../ui/button.tsx'
import { type Column, Table } from '../ui/table.tsx'

/** A chart with its title and legend, and behind a toggle the same numbers as a table. */
export const ChartFrame = <Row,>(props: {
  title: string
  /** What it shows, in a sentence: also what those hear who do not see it. */
  about: string
  legend?: ComponentChildren
  actions?: ComponentChildren
  columns: Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  wide?: boolean
  children: ComponentChildren
}) => {
  const asTable = useSignal(false)
  const id = useId()
  return (
    <section class={`panel chart${props.wide ? ' wide' : ''}`} aria-labelledby={id}>
      <header class="panel-head">
        <div>
          <h2 id={id}>{props.title}</h2>
          <p class="muted">{props.about}</p>
        </div>
        <div class="actions">
          {props.actions}
          <Button
            kind="quiet"
            small
            icon={asTable.value ? 'chart' : 'table'}
            label={asTable.value ? `Show ${props.title} as a chart` : `Show ${props.title} as a table`}
            onClick={() => {
              asTable.value = !asTable.value
            }}
          />
        </div>
      </header>
      {asTable.value ? (
        <div class="chart-table">
          <Table
            label={`${props.title} as a table`}
            columns={props.columns}
            rows={props.rows}
            keyOf={props.keyOf}
          />
        </div>
      ) : (
        <>
          {props.legend}
          {props.children}
        </>
      )}
    </section>
  )
}

export type LegendEntry = { label: string; color: string; dashed?: boolean }

export const Legend = ({ entries }: { entries: readonly LegendEntry[] }) => (
  <ul class="legend">
    {entries.map(({ label, color, dashed }) => (
      <li key={label}>
        <span
          class={`swatch${dashed ? ' dashed' : ''}`}
          style={{ color: `var(--${color})` }}
          aria-hidden="true"
        />
        {label}
      </li>
    ))}
  </ul>
)
