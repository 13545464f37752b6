import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Attempt, Job } from '../../api/answers.ts'
import { now } from '../../ui/clock.ts'
import { duration } from '../../ui/format.ts'
import { Panel } from '../../ui/panel.tsx'
import { elapsed } from './elapsed.ts'
import { outlookOf, SOURCES, verdictOf } from './prediction-words.ts'

/** What was predicted, and what became of it. While an attempt runs it moves with the clock. */
export const Prediction = ({ job, attempts }: { job: Job; attempts: readonly Attempt[] }) => {
  const { prediction, status } = job
  const last = attempts.at(-1)
  const isRunning = status === 'running' && job.started_at !== null
  const elapsedMs = isRunning ? Math.max(0, now.value - Date.parse(job.started_at ?? '')) : null
  const actualMs = isFinished(status) ? (last?.runtime_ms ?? null) : null
  return (
    <Panel title="Prediction" about={wordsOf(job, elapsedMs, actualMs)}>
      <Scale {...prediction} takenMs={elapsedMs ?? actualMs} status={status} />
      <dl class="facts">
        <dt>p50</dt>
        <dd>{duration(prediction.p50_ms)}: half of such attempts take no longer</dd>
        <dt>p90</dt>
        <dd>{duration(prediction.p90_ms)}: nine of ten take no longer</dd>
        <dt>{isRunning ? 'Running for' : 'Actual'}</dt>
        <dd>{elapsedMs === null ? duration(actualMs) : elapsed(elapsedMs)}</dd>
        <dt>Learned from</dt>
        <dd>
          {SOURCES[prediction.source]}
          {prediction.model_version !== null && (
            <>
              , <a href="#/model">version {prediction.model_version}</a>
            </>
          )}
        </dd>
      </dl>
    </Panel>
  )
}

const wordsOf = ({ prediction, status }: Job, elapsedMs: number | null, actualMs: number | null): string => {
  if (elapsedMs !== null) return outlookOf(prediction, elapsedMs)
  if (!isFinished(status)) return 'How long an attempt will probably take.'
  if (actualMs === null) return 'It never ran: there is nothing to compare with.'
  if (status === 'completed') return verdictOf(prediction, actualMs)
  return `The last attempt ended after ${duration(actualMs)}. The prediction is for attempts that complete.`
}

/** What was taken, as a bar, against the two marks. */
const Scale = (props: { p50_ms: number; p90_ms: number; takenMs: number | null; status: Job['status'] }) => {
  const { p50_ms, p90_ms, takenMs, status } = props
  const longestMs = Math.max(p90_ms * 1.15, (takenMs ?? 0) * 1.02)
  const at = (ms: number): string => `${Math.min(100, (ms / longestMs) * 100)}%`
  // Their names would stand on each other.
  const areNear = (p90_ms - p50_ms) / longestMs < 0.1
  const isOver = takenMs !== null && takenMs > p90_ms
  return (
    <div
      class="scale"
      role="img"
      aria-label={`${takenMs === null ? 'Not run yet' : duration(takenMs)}, against p50 ${duration(p50_ms)} and p90 ${duration(p90_ms)}`}
    >
      <div class="scale-track">
        {takenMs !== null && (
          <span class={`scale-bar ${status}${isOver ? ' over' : ''}`} style={{ width: at(takenMs) }} />
        )}
        <span class="scale-mark" style={{ left: at(p50_ms) }} title={`p50: ${duration(p50_ms)}`} />
        <span class="scale-mark" style={{ left: at(p90_ms) }} title={`p90: ${duration(p90_ms)}`} />
      </div>
      <div class="scale-names">
        {areNear ? (
          <span style={{ left: at(p90_ms) }} class="after">
            p50, p90
          </span>
        ) : (
          <>
            <span style={{ left: at(p50_ms) }}>p50</span>
            <span style={{ left: at(p90_ms) }}>p90</span>
          </>
        )}
      </div>
    </div>
  )
}
