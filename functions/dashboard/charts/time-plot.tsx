/** uPlot, in the colours of the page. It draws on a canvas: colours are read from the styles when it is made. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { scheme } from '../ui/scheme.ts'

export type PlotSeries = {
  label: string
  /** A colour of the styles, such as `accent`. */
  color: string
  /** One for each time; null is a gap. */
  values: readonly (number | null)[]
  kind?: 'line' | 'area' | 'bars'
  dashed?: boolean
}

export type TimePlotProps = {
  /** What those hear who do not see it. */
  label: string
  /** Milliseconds. */
  times: readonly number[]
  series: readonly PlotSeries[]
  format: (value: number) => string
  height?: number
  /** Values are shown on a logarithmic scale. */
  log?: boolean
  min?: number
  max?: number
  /** Values are counted: no ticks between 0 and 1. */
  counted?: boolean
}

export const TimePlot = (props: TimePlotProps) => {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const shape = JSON.stringify([
    props.series.map(({ values, ...rest }) => rest),
    props.height,
    props.log,
    props.min,
    props.max,
  ])

  useEffect(() => {
    const element = frame.current
    if (!element) return
    const made = new uPlot(optionsFor(props, element), dataOf(props), element)
    plot.current = made
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: made.height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [shape, scheme.value])

  useEffect(() => {
    plot.current?.setData(dataOf(props))
  }, [props.times, props.series])

  return (
    <div
      ref={frame}
      class="plot"
      role="img"
      aria-label={props.label}
      style={{ height: `${props.height ?? HEIGHT}px` }}
    />
  )
}

const HEIGHT = 220
const WHOLE_STEPS = [1, 2, 5]
  .flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power))
  .toSorted((a, b) => a - b)

/** In seconds. Ticks have minutes: two within one would read the same. */
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * 3_600),
  ...[1, 2, 5, 10, 15, 30].map((days) => days * 86_400),
]

/** Around a single point there is an hour. */
const spanOf = ({ data: [times] }: uPlot, first: number | null, last: number | null): [number, number] => {
  const [from, to] = [first ?? 0, last ?? 0]
  return times.length === 1 ? [from - 1_800, from + 1_800] : [from, to]
}

const dataOf = ({ times, series }: TimePlotProps): uPlot.AlignedData => [
  times.map((ms) => ms / 1000),
  ...series.map(({ values }) => [...values]),
]

const optionsFor = (props: TimePlotProps, element: HTMLElement): uPlot.Options => {
  const styles = getComputedStyle(element)
  const color = (name: string): string => resolve(element, styles.getPropertyValue(`--${name}`))
  const axis = {
    stroke: color('muted'),
    font: `12px ${styles.fontFamily}`,
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height: props.height ?? HEIGHT,
    legend: { show: false },
    padding: [8, 18, 0, 0],
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { range: spanOf }, y: { distr: props.log ? 3 : 1, range: rangeFor(props) } },
    axes: [
      {
        ...axis,
        values: (_, ticks) => ticks.map((at, n) => timeTick(at, ticks[n - 1])),
        space: 70,
        size: 30,
        incrs: TIME_STEPS,
      },
      {
        ...axis,
        values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : props.format(tick))),
        size: axisSize,
        ...(props.counted && { incrs: WHOLE_STEPS }),
      },
    ],
    series: [{}, ...props.series.map((one) => seriesFor(one, color(one.color)))],
    plugins: [tooltip(props.format)],
  }
}

const seriesFor = ({ label, kind = 'line', dashed }: PlotSeries, color: string): uPlot.Series => ({
  label,
  stroke: color,
  width: kind === 'bars' ? 0 : 2,
  spanGaps: false,
  // A line needs two points; one is a dot.
  points: { show: ({ data }) => data[0].length === 1, size: 8, fill: color },
  ...(dashed && { dash: [5, 5] }),
  ...(kind !== 'line' && { fill: withAlpha(color, kind === 'bars' ? 0.85 : 0.14) }),
  ...(kind === 'bars' && uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.7, 40], radius: 0.15 }) }),
})

const rangeFor = ({ min, max, log }: TimePlotProps): uPlot.Scale.Range =>
  log
    ? (_, low, high) => [Math.max(0.1, low / 1.5), Math.max(1, high * 1.5)]
    : (_, low, high) => [min ?? Math.min(0, low), max ?? (high > 0 ? high * 1.08 : 1)]

/** As wide as its widest text. */
const axisSize: uPlot.Axis.Size = (_, values) =>
  14 + Math.max(0, ...(values ?? []).map((text) => text.length)) * 6.6

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

const timeTick = (at: number, before: number | undefined): string => {
  const [date, earlier] = [new Date(at * 1000), new Date((before ?? 0) * 1000)]
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0
  return isMidnight || (before !== undefined && date.getDate() !== earlier.getDate())
    ? day.format(date)
    : clock.format(date)
}

/** A canvas does not know light-dark(): the browser works it out. */
const resolve = (element: HTMLElement, value: string): string => {
  const probe = document.createElement('span')
  probe.style.color = value
  element.appendChild(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const withAlpha = (color: string, alpha: number): string =>
  color.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`)

const exact = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

const tooltip = (format: (value: number) => string): uPlot.Plugin => {
  const box = document.createElement('div')
  box.className = 'tooltip'
  return {
    hooks: {
      init: (plot) => {
        box.hidden = true
        plot.over.appendChild(box)
      },
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor
        box.hidden = idx === null || idx === undefined || left < 0
        if (box.hidden || idx === null || idx === undefined) return
        const lines = plot.series.slice(1).flatMap((one, n) => {
          const value = plot.data[n + 1]?.[idx]
          return value === null || value === undefined ? [] : [`${one.label}: ${format(value)}`]
        })
        box.textContent = [exact.format(new Date((plot.data[0][idx] ?? 0) * 1000)), ...lines].join('\n')
        const onRight = left > plot.over.clientWidth / 2
        box.style.left = onRight ? '' : `${left + 12}px`
        box.style.right = onRight ? `${plot.over.clientWidth - left + 12}px` : ''
      },
    },
  }
}
