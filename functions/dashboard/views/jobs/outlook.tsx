import type { JobSummary } from '../../api/answers.ts'
import { now } from '../../ui/clock.ts'
import { DASH, duration, exactTime, relativeTime } from '../../ui/format.ts'

/** How long it ran beside what was predicted, when it will probably end, or how soon its turn comes. */
export const Outlook = ({ job }: { job: JobSummary }) => {
  const { status, started_at, finished_at, run_at } = job
  if (started_at && finished_at)
    return <Ran job={job} ms={Date.parse(finished_at) - Date.parse(started_at)} />
  if (status === 'running' && started_at) return <Ends job={job} startedMs={Date.parse(started_at)} />
  if (status === 'pending' && run_at) {
    return (
      <span title={`Starts ${exactTime(run_at)}`}>starts {relativeTime(Date.parse(run_at), now.value)}</span>
    )
  }
  if (finished_at) return <span class="muted">{DASH}</span>
  return (
    <span class="muted" title="Priority score: how soon its turn comes, 1 being the soonest">
      score {job.priority_score.toFixed(3)}
    </span>
  )
}

/** From this factor on it is worth to say. */
const NOTEWORTHY = 1.25

const Ran = ({ job, ms }: { job: JobSummary; ms: number }) => {
  const ratio = ms / job.prediction.p50_ms
  const says = job.status === 'completed' && (ratio > NOTEWORTHY || ratio < 1 / NOTEWORTHY)
  return (
    <>
      {duration(ms)}
      {says && (
        <span
          class={`ratio ${ms > job.prediction.p90_ms ? 'over' : ''}`}
          title="Compared with the prediction"
        >
          {factor(ratio)}
        </span>
      )}
    </>
  )
}

const factor = (ratio: number): string =>
  ratio >= 9.95 ? `× ${Math.round(Math.min(ratio, 999))}` : `× ${ratio.toFixed(ratio < 0.095 ? 2 : 1)}`

const Ends = ({ job, startedMs }: { job: JobSummary; startedMs: number }) => {
  const endsMs = startedMs + job.prediction.p50_ms
  const overMs = now.value - endsMs
  return (
    <span title={`Started ${exactTime(startedMs)}, predicted ${duration(job.prediction.p50_ms)}`}>
      {overMs > 1_500
        ? `${duration(Math.round(overMs / 1_000) * 1_000)} over`
        : `ends ${relativeTime(endsMs, now.value)}`}
    </span>
  )
}
