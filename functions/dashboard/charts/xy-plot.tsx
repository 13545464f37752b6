import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { apart, type Scale } from './scale.ts'

/** From values to pixels. */
export type Place = { x: (value: number) => number; y: (value: number) => number }

type Axis = Scale & { title: string }

const HEIGHT = 300
const MARGIN = { top: 20, right: 14, bottom: 44 }
/** Ticks stand at least so far apart, in pixels. */
const GAP = { x: 56, y: 22 }

/** Two axes with a grid, drawn as SVG in the width that there is. What stands on them is the caller's. */
export const XyPlot = (props: {
  /** What those hear who do not see it. */
  label: string
  x: Axis
  y: Axis
  height?: number
  children: (place: Place) => ComponentChildren
}) => {
  const { frame, width } = useWidth()
  const { x, y, height = HEIGHT } = props
  const left = 26 + Math.max(...y.ticks.map(({ label }) => label.length)) * 6.6
  const [right, bottom] = [Math.max(left + 1, width - MARGIN.right), height - MARGIN.bottom]
  const place: Place = {
    x: (value) => left + x.place(value) * (right - left),
    y: (value) => bottom - y.place(value) * (bottom - MARGIN.top),
  }
  return (
    <div ref={frame} class="plot" style={{ height: `${height}px` }}>
      {width > 0 && (
        <svg class="xy-plot" width={width} height={height} role="img" aria-label={props.label}>
          {apart(x, GAP.x / (right - left)).map(({ value, label }) => (
            <g key={value}>
              <line x1={place.x(value)} x2={place.x(value)} y1={MARGIN.top} y2={bottom} />
              <text x={place.x(value)} y={bottom + 16} text-anchor="middle">
                {label}
              </text>
            </g>
          ))}
          {apart(y, GAP.y / (bottom - MARGIN.top)).map(({ value, label }) => (
            <g key={value}>
              <line x1={left} x2={right} y1={place.y(value)} y2={place.y(value)} />
              <text x={left - 7} y={place.y(value) + 4} text-anchor="end">
                {label}
              </text>
            </g>
          ))}
          <text x={(left + right) / 2} y={height - 6} text-anchor="middle">
            {x.title}
          </text>
          <text transform={`translate(11 ${(MARGIN.top + bottom) / 2}) rotate(-90)`} text-anchor="middle">
            {y.title}
          </text>
          {props.children(place)}
        </svg>
      )}
    </div>
  )
}

const useWidth = () => {
  const frame = useRef<HTMLDivElement>(null)
  const width = useSignal(0)
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const observer = new ResizeObserver(() => {
      width.value = element.clientWidth
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return { frame, width: width.value }
}

/** The points of a line, as SVG wants them. */
export const pathOf = (points: readonly { x: number; y: number }[], { x, y }: Place): string =>
  points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(' ')
