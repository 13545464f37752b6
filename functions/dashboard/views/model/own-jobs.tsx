import type { ModelCard } from '../../api/answers.ts'
import { Empty, Loaded, Skeleton } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Segments } from '../../ui/segments.tsx'
import { type Accuracy, RANGES } from './accuracy.ts'
import { AccuracyOverTime } from './accuracy-over-time.tsx'
import { Calibration } from './calibration.tsx'
import { Facts } from './facts.tsx'
import { Scatter } from './scatter.tsx'

/** How good predictions for the organisation's own jobs were. */
export const OwnJobs = ({ accuracy, model }: { accuracy: Accuracy; model: ModelCard }) => (
  <>
    <div class="part">
      <h2>Your organisation's jobs</h2>
      <div class="actions">
        <TypeChoice accuracy={accuracy} />
        <Segments
          label="Range"
          value={accuracy.range}
          options={RANGES}
          onChange={(range) => accuracy.choose({ range })}
        />
      </div>
    </div>
    <Loaded resource={accuracy.answer} bones={<Skeleton height="820px" />}>
      {(answer) =>
        answer.overall.jobs === 0 ? (
          <Panel title="Accuracy">
            <Empty title="No job with a prediction has completed in this time">
              <p class="muted">Choose a longer time or another type, or submit a job.</p>
            </Empty>
          </Panel>
        ) : (
          <div class="grid">
            <Scatter samples={answer.samples} />
            <AccuracyOverTime accuracy={answer} />
            <Calibration accuracy={answer} coverage={model.calibration.p90_coverage} />
            <Facts accuracy={answer} eta={model.eta} />
          </div>
        )
      }
    </Loaded>
  </>
)

const TypeChoice = ({ accuracy }: { accuracy: Accuracy }) => (
  <select
    class="compact"
    aria-label="Type of jobs"
    value={accuracy.type}
    onChange={(event) => accuracy.choose({ type: event.currentTarget.value })}
  >
    <option value="">All types</option>
    {accuracy.types.map((type) => (
      <option key={type} value={type}>
        {type}
      </option>
    ))}
  </select>
)
