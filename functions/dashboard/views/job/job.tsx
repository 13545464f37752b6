import { useEffect, useRef } from 'preact/hooks'
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Attempt, Explanation, Job } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { getAll } from '../../api/get-all.ts'
import { Refusal } from '../../api/refusal.ts'
import { type Resource, useResource } from '../../api/use-resource.ts'
import { summary } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { Failure, Skeleton } from '../../ui/notes.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { Callbacks } from './callbacks.tsx'
import { Dependencies } from './dependencies.tsx'
import { Facts } from './facts.tsx'
import { JobHead } from './head.tsx'
import { Logs } from './logs.tsx'
import { Payload } from './payload.tsx'
import { Prediction } from './prediction.tsx'
import { ProgressBar } from './progress.tsx'
import { Standing } from './standing.tsx'
import { TimelineChart } from './timeline-chart.tsx'
import { useJobStream } from './use-job-stream.ts'

export const JobView = ({ id }: { id: string }) => {
  const path = `/jobs/${encodeURIComponent(id)}`
  const job = useResource((signal) => get<Job>(path, {}, signal))
  const { data, error } = job
  if (isMissing(error.value)) return <NoSuchJob id={id} />
  if (error.value && !data.value) return <Failure error={error.value} retry={job.reload} />
  if (!data.value) return <Skeleton height="60vh" />
  return <Details job={data.value} reload={job.reload} />
}

const Details = ({ job, reload }: { job: Job; reload: () => void }) => {
  const path = `/jobs/${job.id}`
  const attempts = useResource((signal) => getAll<Attempt>(`${path}/attempts`, signal))
  const explanation = useResource((signal) => get<Explanation>(`${path}/explain`, {}, signal))
  const lookAnew = (): void => {
    reload()
    attempts.reload()
    explanation.reload()
  }
  const stream = useJobStream(job.id, lookAnew)
  useExplanationOfWaiting(job, explanation)
  const present =
    explanation.data.value?.eta === undefined ? job : { ...job, eta: explanation.data.value.eta }
  return (
    <>
      <JobHead job={job} onChange={lookAnew} />
      <div class="grid">
        <ProgressBar job={job} live={stream.progress.value} />
        <Standing job={job} explanation={explanation} />
        <Prediction job={job} attempts={attempts.data.value ?? []} />
        <TimelineChart job={present} attempts={attempts} />
        <Logs job={job} attempts={attempts.data.value ?? []} stream={stream} />
        <Dependencies job={job} />
        <Payload job={job} />
        <Facts job={job} />
        <Callbacks job={job} />
      </div>
    </>
  )
}

const EXPLAIN_EVERY_MS = 2_000

/**
 * What keeps a job that waits changes with what happens to others, also to those of other organisations, whose events are
 * not told. The numbers of the queue come when it has moved, and every few seconds.
 */
const useExplanationOfWaiting = ({ status }: Job, { reload }: Resource<Explanation>): void => {
  const lastMs = useRef(0)
  const waits = !isFinished(status) && status !== 'running'
  useEffect(() => {
    if (!waits || Date.now() - lastMs.current < EXPLAIN_EVERY_MS) return
    lastMs.current = Date.now()
    reload()
  }, [waits, summary.value])
}

/** What is no id at all is no job either. */
const isMissing = (error: Error | undefined): boolean =>
  error instanceof Refusal && (error.status === 404 || error.slug === 'invalid-request')

const NoSuchJob = ({ id }: { id: string }) => (
  <PageHead
    title="No such job"
    about={
      <>
        There is no job <code>{id}</code> in this organisation. It may belong to another, or was removed some
        time after its end. <a href={linkTo('/jobs')}>Back to the jobs</a>.
      </>
    }
  />
)
