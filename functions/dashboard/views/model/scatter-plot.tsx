import { useRef } from 'preact/hooks'
import type { Scale } from '../../charts/scale.ts'
import { type Place, pathOf, XyPlot } from '../../charts/xy-plot.tsx'
import { duration } from '../../ui/format.ts'
import { isLate, type Look, p90Line, type Sample } from './scatter-data.ts'
import { usePointer } from './use-pointer.ts'

type Cloud = { samples: readonly Sample[]; lookOf: (type: string) => Look }

/** A point for each job; the pointer and the arrow keys tell which one it is. */
export const ScatterPlot = ({ samples, lookOf, scale }: Cloud & { scale: Scale }) => {
  const place = useRef<Place | undefined>(undefined)
  const { chosen, isByKey, handlers } = usePointer(samples, place)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, this has points
    <div
      class="pointed"
      role="group"
      aria-label="Jobs by predicted and actual runtime. Arrow keys go from one to the next, Enter opens it."
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its points are reached by arrow keys
      tabIndex={0}
      {...handlers}
    >
      <XyPlot
        label={`Predicted and actual runtimes of ${samples.length} jobs on logarithmic axes.`}
        x={{ ...scale, title: 'predicted (p50)' }}
        y={{ ...scale, title: 'actual' }}
        height={340}
      >
        {(current) => {
          place.current = current
          return (
            <>
              <Band samples={samples} place={current} />
              <Marks samples={samples} lookOf={lookOf} place={current} />
              {chosen && <circle class="ring" r="8" {...centreOf(chosen, current)} />}
            </>
          )
        }}
      </XyPlot>
      {chosen && place.current && (
        <p class="tooltip" style={besides(centreOf(chosen, place.current))}>
          {describe(chosen)}
        </p>
      )}
      <p class="visually-hidden" aria-live="polite">
        {isByKey && chosen ? describe(chosen) : ''}
      </p>
    </div>
  )
}

const centreOf = ({ predicted_ms, actual_ms }: Sample, { x, y }: Place) => ({
  cx: x(predicted_ms),
  cy: y(actual_ms),
})

/** The diagonal, and above it how far the p90s reach. */
const Band = ({ samples, place }: { samples: readonly Sample[]; place: Place }) => {
  const upper = p90Line(samples)
  const lower = upper.map(({ x }) => ({ x, y: x })).reverse()
  const [first, last] = [upper[0], upper.at(-1)]
  if (!first || !last) return null
  const ends = [first, last].map(({ x }) => ({ x, y: x }))
  return (
    <>
      <polygon class="band" points={pathOf([...upper, ...lower], place)} />
      <polyline class="ideal" points={pathOf(ends, place)} />
    </>
  )
}

const Marks = ({ samples, lookOf, place }: Cloud & { place: Place }) => (
  <>
    {samples.map((sample) => {
      const { color, shape } = lookOf(sample.type)
      const { cx, cy } = centreOf(sample, place)
      return (
        <path
          key={sample.job_id}
          class={`point ${color}${isLate(sample) ? ' hollow' : ''}`}
          d={shape}
          transform={`translate(${cx.toFixed(1)} ${cy.toFixed(1)})`}
        />
      )
    })}
  </>
)

const describe = (sample: Sample): string =>
  [
    `${sample.name} (${sample.type})`,
    `predicted ${duration(sample.predicted_ms)}, p90 ${duration(sample.predicted_p90_ms)}`,
    `took ${duration(sample.actual_ms)}${isLate(sample) ? ', longer than its p90' : ''}`,
  ].join('\n')

/** On the side where there is more room. */
const besides = ({ cx, cy }: { cx: number; cy: number }) => ({
  top: `${cy}px`,
  left: `clamp(0px, ${cx + 14}px, calc(100% - 15rem))`,
})
