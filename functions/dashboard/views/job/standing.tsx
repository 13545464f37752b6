import type { Explanation, Job } from '../../api/answers.ts'
import type { Resource } from '../../api/use-resource.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { Code } from '../../ui/code.tsx'
import { count } from '../../ui/format.ts'
import { Empty, Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Place } from './place.tsx'
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
      <Parents explanation={explanation} />
      {others.length > 0 && (
        <ul class="reasons">
          {others.map((reason) => (
            <li key={reason.code + reason.message}>
              <ReasonText reason={reason} job={job} />
            </li>
          ))}
        </ul>
      )}
      <Place explanation={explanation} />
    </>
  )
}

type Parent = { id: string; name: string; status: Job['status'] }

/** The jobs that it waits for, to go to. */
const Parents = ({ explanation }: { explanation: Explanation }) => {
  const reason = explanation.reasons.find(({ code }) => code === 'dependency')
  const parents = (reason?.parents ?? []) as Parent[]
  const more = Number(reason?.open_parents ?? 0) - parents.length
  return parents.length === 0 ? null : (
    <ul class="reasons plain">
      {parents.map(({ id, name, status }) => (
        <li key={id}>
          <StatusBadge status={status} /> <a href={linkTo(`/jobs/${id}`)}>{name}</a>
        </li>
      ))}
      {more > 0 && <li class="muted">and {count(more)} more</li>}
    </ul>
  )
}
