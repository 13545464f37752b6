import type { ComponentChildren } from 'preact'

export type Column<Row> = {
  title: string
  cell: (row: Row) => ComponentChildren
  /** Numbers stand right, so that their places line up. */
  numeric?: boolean
  /** Left out where the screen is narrow. */
  minor?: boolean
}

/** A plain table that scrolls sideways by itself where it does not fit. */
export const Table = <Row,>(props: {
  label: string
  columns: Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string
  /** What stands there while there are no rows. */
  empty?: ComponentChildren
}) => {
  if (props.rows.length === 0 && props.empty) return <>{props.empty}</>
  const classOf = ({ numeric, minor }: Column<Row>): string =>
    [numeric && 'numeric', minor && 'minor'].filter(Boolean).join(' ')
  return (
    <section
      class="table-frame"
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {props.columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
