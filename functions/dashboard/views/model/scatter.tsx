import { ChartFrame } from '../../charts/chart-frame.tsx'
import { durationScale } from '../../charts/log-scale.ts'
import { linkTo } from '../../router.ts'
import { count, duration, percent } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'
import { isLate, type Look, looksOf, p90Line, type Sample } from './scatter-data.ts'
import { ScatterPlot } from './scatter-plot.tsx'

/** How long jobs were predicted to take, and how long they took. */
export const Scatter = ({ samples }: { samples: readonly Sample[] }) => {
  const values = samples.flatMap((one) => [one.predicted_ms, one.actual_ms])
  const scale = durationScale([...values, ...p90Line(samples).map(({ y }) => y)])
  const looks = looksOf(samples)
  const late = samples.filter(isLate).length
  return (
    <ChartFrame
      title="Predicted and actual"
      about={`The newest ${count(samples.length)} jobs. On the diagonal is right; ${percent(late / Math.max(1, samples.length), 0)} took longer than their p90 and are hollow.`}
      legend={<Types legend={looks.legend} />}
      columns={[
        {
          title: 'Job',
          cell: ({ job_id, name }) => <a href={linkTo(`/jobs/${job_id}`)}>{name}</a>,
        },
        { title: 'Type', minor: true, cell: ({ type }) => type },
        { title: 'Predicted', numeric: true, cell: ({ predicted_ms }) => duration(predicted_ms) },
        {
          title: 'p90',
          numeric: true,
          minor: true,
          cell: ({ predicted_p90_ms }) => duration(predicted_p90_ms),
        },
        { title: 'Actual', numeric: true, cell: ({ actual_ms }) => duration(actual_ms) },
        { title: 'Ended', cell: ({ at }) => <Time at={at} /> },
      ]}
      rows={samples}
      keyOf={({ job_id }) => job_id}
    >
      <ScatterPlot samples={samples} scale={scale} lookOf={looks.of} />
    </ChartFrame>
  )
}

const Types = ({ legend }: { legend: readonly Look[] }) => (
  <ul class="legend">
    {legend.map(({ label, color, shape }) => (
      <li key={label}>
        <svg class="xy-plot" width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
          <path class={`point ${color}`} d={shape} />
        </svg>
        {label}
      </li>
    ))}
    <li>
      <span class="swatch dashed" aria-hidden="true" />
      as predicted
    </li>
    <li>
      <span class="band-swatch" aria-hidden="true" />
      up to the p90
    </li>
  </ul>
)
