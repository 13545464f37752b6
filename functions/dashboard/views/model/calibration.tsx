import type { PredictionAccuracy } from '../../api/answers.ts'
import { ChartFrame, Legend } from '../../charts/chart-frame.tsx'
import { linearScale } from '../../charts/scale.ts'
import { pathOf, XyPlot } from '../../charts/xy-plot.tsx'
import { count, percent } from '../../ui/format.ts'

const whole = (share: number): string => percent(share, 0)
const SCALE = linearScale(1, whole)

/** Whether as many jobs end below a predicted quantile as should. */
export const Calibration = ({
  accuracy,
  coverage,
}: {
  accuracy: PredictionAccuracy
  /** Below their p90 in all organisations. */
  coverage: number | null
}) => {
  const { calibration, overall } = accuracy
  const own = calibration.flatMap(({ predicted, actual }) =>
    actual === null ? [] : [{ x: predicted, y: actual }],
  )
  const everywhere = coverage === null ? [] : [{ x: 0.9, y: coverage }]
  const rows = calibration.map((row) => ({ ...row, all: row.predicted === 0.9 ? coverage : null }))
  return (
    <ChartFrame
      title="Calibration"
      about={`Of ${count(overall.jobs)} jobs, ${whole(overall.within_p50 ?? 0)} ended below their p50 and ${whole(overall.within_p90 ?? 0)} below their p90. On the diagonal is right.`}
      legend={
        <Legend
          entries={[
            { label: 'Your jobs', color: 'accent' },
            { label: 'All organisations', color: 'green' },
            { label: 'As predicted', color: 'muted', dashed: true },
          ]}
        />
      }
      columns={[
        { title: 'Predicted', numeric: true, cell: ({ predicted }) => whole(predicted) },
        { title: 'Your jobs', numeric: true, cell: ({ actual }) => percent(actual) },
        { title: 'All organisations', numeric: true, cell: ({ all }) => percent(all) },
      ]}
      rows={rows}
      keyOf={({ predicted }) => String(predicted)}
    >
      <XyPlot
        label="Calibration: the share of jobs that ended below a predicted quantile, beside that quantile."
        x={{ ...SCALE, title: 'predicted to end by then' }}
        y={{ ...SCALE, title: 'ended by then' }}
        height={280}
      >
        {(place) => (
          <>
            <polyline class="ideal" points={pathOf([ZERO, ONE], place)} />
            <polyline class="curve accent" points={pathOf([ZERO, ...own, ONE], place)} />
            {own.map((point) => (
              <g key={point.x}>
                <circle class="dot accent" r="5" cx={place.x(point.x)} cy={place.y(point.y)} />
                <text
                  class="value"
                  x={place.x(point.x) + (point.x > 0.7 ? -4 : 8)}
                  y={place.y(point.y) + (point.x > 0.7 ? -9 : 17)}
                  // Above the line where it is high, below where there is more to come.
                  text-anchor={point.x > 0.7 ? 'end' : 'start'}
                >
                  p{Math.round(point.x * 100)}: {whole(point.y)}
                </text>
              </g>
            ))}
            {everywhere.map((point) => (
              <path
                key="all"
                class="dot green"
                d="M0-6 6 0 0 6-6 0z"
                transform={`translate(${place.x(point.x)} ${place.y(point.y)})`}
              />
            ))}
          </>
        )}
      </XyPlot>
    </ChartFrame>
  )
}

const ZERO = { x: 0, y: 0 }
const ONE = { x: 1, y: 1 }
