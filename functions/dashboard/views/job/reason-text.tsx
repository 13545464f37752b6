import type { Explanation, Job } from '../../api/answers.ts'
import { now } from '../../ui/clock.ts'
import { count, duration, seconds } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'
import { elapsed } from './elapsed.ts'

type Reason = Explanation['reasons'][number]

/** The sentence of the API; but where it tells how long something takes, it goes on while one looks at it. */
export const ReasonText = ({ reason, job }: { reason: Reason; job: Job }) => {
  switch (reason.code) {
    case 'running':
      return (
        <>
          It has been running for {ranFor(job)} on {job.worker_id}, of {duration(job.prediction.p50_ms)} that
          were predicted.
        </>
      )
    case 'dependency':
      return (
        <>
          It waits for{' '}
          {reason.open_parents === 1
            ? 'a job that has not completed:'
            : `${count(Number(reason.open_parents))} jobs that have not completed:`}
        </>
      )
    case 'slow':
      return <>It is slow: 99 of 100 such attempts take less than {seconds(Number(reason.p99_seconds))}.</>
    case 'delayed':
      return (
        <>
          It is not to start yet: its time comes <At reason={reason} field="run_at" />.
        </>
      )
    case 'retry_backoff':
      return (
        <>
          Attempt {String(reason.attempts)} of {String(reason.max_attempts)} failed
          {job.error && ` (${job.error.code}: ${job.error.message})`}; it is tried again{' '}
          <At reason={reason} field="wake_at" />.
        </>
      )
    case 'paused':
      return (
        <>
          {reason.paused_type === null ? 'The queue is paused' : `Jobs of the type ${job.type} are paused`},
          since <At reason={reason} field="since" />.
        </>
      )
    case 'deadline':
      return <Deadline reason={reason} job={job} />
    default:
      return <>{reason.message}</>
  }
}

const At = ({ reason, field }: { reason: Reason; field: string }) => <Time at={String(reason[field])} />

const ranFor = ({ started_at }: Job): string =>
  started_at === null ? 'a moment' : elapsed(now.value - Date.parse(started_at))

const Deadline = ({ reason, job }: { reason: Reason; job: Job }) => {
  const deadline = <At reason={reason} field="deadline" />
  if (reason.at_risk) return <>It will probably miss its deadline, {deadline}.</>
  if (job.status === 'running') return <>It will probably make its deadline, {deadline}.</>
  return (
    <>
      Its deadline is {deadline}. If it has not started <At reason={reason} field="start_by" />, it goes
      first.
    </>
  )
}
