import type { ComponentChildren } from 'preact'
import { chartTime } from '../ui/format.ts'
import { ChartFrame, Legend } from './chart-frame.tsx'
import { type PlotSeries, TimePlot, type TimePlotProps } from './time-plot.tsx'

type Row = { at: number; values: (number | null)[] }

/** Numbers over time: drawn, and as a table. */
export const TimeChart = (
  props: Omit<TimePlotProps, 'label'> & {
    title: string
    about: string
    actions?: ComponentChildren
    wide?: boolean
    /** What the numbers are, for the heads of the table. */
    unit?: string
  },
) => {
  const { title, about, actions, wide, unit, ...plot } = props
  const rows: Row[] = props.times.map((at, n) => ({
    at,
    values: props.series.map(({ values }) => values[n] ?? null),
  }))
  const spansDays = (props.times.at(-1) ?? 0) - (props.times[0] ?? 0) > 86_400_000
  const column = ({ label }: PlotSeries, n: number) => ({
    title: unit ? `${label}, ${unit}` : label,
    numeric: true,
    cell: ({ values }: Row) => formatted(values[n], props.format),
  })
  return (
    <ChartFrame
      title={title}
      about={about}
      actions={actions}
      wide={wide ?? false}
      legend={props.series.length > 1 && <Legend entries={props.series} />}
      columns={[{ title: 'Time', cell: ({ at }) => chartTime(at, spansDays) }, ...props.series.map(column)]}
      rows={rows.toReversed()}
      keyOf={({ at }) => String(at)}
    >
      <TimePlot {...plot} label={`${title}. ${about}`} />
    </ChartFrame>
  )
}

const formatted = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? '–' : format(value)
