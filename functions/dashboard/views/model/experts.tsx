import type { ModelCard } from '../../api/answers.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { EXPERT_NAMES, errorText, numberAt, pointsOf } from './words.ts'

const TITLE = 'Experts over time'

/** Four are enough to look at: what is shipped, the plain rules that it should beat, and the network alone. */
const LINES = [
  { expert: 'smartqueue', color: 'accent', kind: 'area' as const },
  { expert: 'series', color: 'muted', dashed: true },
  { expert: 'type-median', color: 'amber', dashed: true },
  { expert: 'lstm', color: 'violet' },
]

export const Experts = ({ model }: { model: ModelCard }) => {
  const points = pointsOf(model)
  if (points.length < 2) {
    return (
      <Panel title={TITLE}>
        <Empty title="Too little has been measured yet">
          <p class="muted">There is a point an hour, and one for each version that is promoted.</p>
        </Empty>
      </Panel>
    )
  }
  return (
    <TimeChart
      title={TITLE}
      about="Mean absolute error of ln(runtime) over up to 2,000 executions before: lower is better."
      times={points.map(({ at }) => Date.parse(at))}
      series={LINES.map(({ expert, ...look }) => ({
        ...look,
        label: EXPERT_NAMES[expert] ?? expert,
        values: points.map(({ errors }) => numberAt(errors, expert)),
      }))}
      height={300}
      format={errorText}
    />
  )
}
