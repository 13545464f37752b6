import type { Explanation, Job } from '../../api/answers.ts'
import type { Resource } from '../../api/use-resource.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { now } from '../../ui/clock.ts'
import { Code } from '../../ui/code.tsx'
import { count, percent, seconds } from '../../ui/format.ts'
import { Empty, Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { ReasonText } from './reason-text.tsx'

const TITLES: Record<Job['status'], string> = {
  pending: 'Why isn’t it running?',
  blocked: 'Why isn’t it running?',
  ready: 'Why isn’t it running?',
  retrying: 'Why isn’t it running?',
  running: 'Where it stands',
  completed: 'Result',
  failed: 'Why did it fail?',
  cancelled: 'Why didn’t it complete?',
}

/** Why the job is where it is. */
export const Standing = ({ job, explanation }: { job: Job; explanation: Resource<Explanation> }) => (
  <Panel title={TITLES[job.status]}>
    <div class="standing">
      <Loaded resource={explanation}>
        {(known) => {
          if (job.status === 'completed') return <Result job={job} summary={known.summary} />
          if (job.status === 'failed') return <Failed job={job} />
          return <Reasons job={job} explanation={known} />
        }}
      </Loaded>
    </div>
  </Panel>
)

const Result = ({ job, summary }: { job: Job; summary: string }) =>
  job.result === null || job.result === undefined ? (
    <Empty title={summary}>
      <p class="muted">Its handler has returned nothing.</p>
    </Empty>
  ) : (
    <>
      <p class="summary">{summary}</p>
      <Code label="The result" value={job.result} />
    </>
  )

const Failed = ({ job }: { job: Job }) => {
  const tries = job.attempts === 1 ? 'its only attempt' : `${job.attempts} attempts`
  return (
    <>
      <p class="summary">It failed {job.attempts === 0 ? 'before it ran' : `after ${tries}`}.</p>
      {job.error && <Code label="The error" value={`${job.error.code}\n${job.error.message}`} />}
      <p class="muted after-code">
        <a href={linkTo('/dead-letters')}>Dead letters</a> shows whether others have failed alike.
      </p>
    </>
  )
}

const Reasons = ({ job, explanation }: { job: Job; explanation: Explanation }) => {
  const [first, ...others] = explanation.reasons
  return (
    <>
      <p class="summary">{first ? <ReasonText reason={first} job={job} /> : explanation.summary}</p>
      {others.length > 0 && (
        <ul class="reasons">
          {others.map((reason) => (
            <li key={reason.code + reason.message}>
              <ReasonText reason={reason} job={job} />
            </li>
          ))}
        </ul>
      )}
      <Parents explanation={explanation} />
      <Place explanation={explanation} />
    </>
  )
}

type Parent = { id: string; name: string; status: Job['status'] }

/** The jobs that it waits for, to go to. */
const Parents = ({ explanation }: { explanation: Explanation }) => {
  const reason = explanation.reasons.find(({ code }) => code === 'dependency')
  const parents = (reason?.parents ?? []) as Parent[]
  return parents.length === 0 ? null : (
    <ul class="reasons plain">
      {parents.map(({ id, name, status }) => (
        <li key={id}>
          <StatusBadge status={status} /> <a href={linkTo(`/jobs/${id}`)}>{name}</a>
        </li>
      ))}
    </ul>
  )
}

const Place = ({
  explanation: { rank, ahead, lane, eta, priority_score, status },
}: {
  explanation: Explanation
}) => (
  <dl class="facts">
    {ahead && rank !== null && (
      <>
        <dt>Place in the queue</dt>
        <dd>
          {ahead.counted ? '' : 'about '}
          {count(rank + 1)}
          {ahead.jobs > 0 && `, behind ${seconds(ahead.predicted_seconds)} of predicted work`}
        </dd>
      </>
    )}
    {lane && (
      <>
        <dt>Lane</dt>
        <dd>
          {lane.number}: {count(lane.jobs)} {lane.jobs === 1 ? 'job' : 'jobs'} of about its rank,{' '}
          {percent(lane.share, 0)} of the queued work
        </dd>
      </>
    )}
    {status !== 'cancelled' && (
      <>
        <dt>Priority score</dt>
        <dd>{priority_score.toFixed(2)} of 1</dd>
      </>
    )}
    {eta && (
      <>
        <dt>{status === 'running' ? 'Started' : 'Probably starts'}</dt>
        <dd>
          <Time at={eta.start_at} />
        </dd>
        <dt>Probably ends</dt>
        <dd>
          {Date.parse(eta.finish_p90_at) > now.value ? (
            <>
              <Time at={eta.finish_p50_at} /> (p90: <Time at={eta.finish_p90_at} />)
            </>
          ) : (
            'any moment: it takes longer than predicted'
          )}
        </dd>
      </>
    )}
  </dl>
)
