import type { ComponentChildren } from 'preact'
import { Fragment } from 'preact'
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Job } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { user } from '../../session/session.ts'
import { ShortId } from '../../ui/code.tsx'
import { bytes, count, counted, DASH, seconds } from '../../ui/format.ts'
import { useNames } from '../../ui/names.ts'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'

export const Facts = ({ job }: { job: Job }) => (
  <Panel title="Details">
    <dl class="facts">
      {factsOf(job).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  </Panel>
)

type Fact = [name: string, value: ComponentChildren]

const factsOf = (job: Job): Fact[] => [
  ['Created', <Time at={job.created_at} />],
  [job.triggered_by ? 'Triggered by' : 'Submitted by', <Origin job={job} />],
  ...when(job.run_at, (at): Fact => ['Not before', <Time at={at} />]),
  ['Started', <Time at={job.started_at} />],
  ['Finished', <Time at={job.finished_at} />],
  ...when(
    job.deadline,
    (at): Fact => [
      'Deadline',
      <>
        <Time at={at} />
        {job.deadline_at_risk && (isFinished(job.status) ? ', missed' : ', at risk')}
      </>,
    ],
  ),
  ['Worker', job.worker_id ? <a href={linkTo('/workers')}>{job.worker_id}</a> : DASH],
  ['Attempts', `${count(job.attempts)} of at most ${count(job.retry.max_attempts)}`],
  ['Retry', retryInWords(job.retry)],
  ['Timeout', job.timeout_seconds === null ? 'that of its type' : seconds(job.timeout_seconds)],
  ['Resources', resourcesInWords(job.resources)],
  ...(job.depends_on.length > 0 ? [dependencyFact(job)] : []),
  ...when(job.fairness_key, (key): Fact => ['Fairness key', <code>{key}</code>]),
  ...when(job.callback_url, (url): Fact => ['Callback URL', <code>{url}</code>]),
]

const when = <Value,>(value: Value | null, fact: (value: Value) => Fact): Fact[] =>
  value === null ? [] : [fact(value)]

const dependencyFact = ({ depends_on, on_parent_failure }: Job): Fact => {
  const one = depends_on.length === 1 ? 'it' : 'one of them'
  const then = on_parent_failure === 'fail' ? 'fails, too' : 'waits until that was retried'
  return ['Waits for', `${counted(depends_on.length, 'job')}; if ${one} fails, this one ${then}`]
}

const resourcesInWords = ({ cpu_units, memory_mb }: Job['resources']): string =>
  `${counted(cpu_units, 'CPU unit')}, ${bytes(memory_mb * 1024 ** 2)} of memory`

const retryInWords = ({ max_attempts, initial_delay_seconds, backoff_multiplier }: Job['retry']): string =>
  max_attempts === 1
    ? 'never'
    : `after ${seconds(initial_delay_seconds)}, then ${backoff_multiplier} × as long each time`

const Origin = ({ job: { triggered_by: trigger, created_by } }: { job: Job }) => {
  switch (trigger?.kind) {
    case 'schedule':
      return (
        <>
          <a href={linkTo(`/schedules/${trigger.schedule_id}`)}>a schedule</a>
          {trigger.tick_at === null ? (
            ', by hand'
          ) : (
            <>
              , for <Time at={trigger.tick_at} />
            </>
          )}
        </>
      )
    case 'webhook':
      return <a href={linkTo(`/webhooks/${trigger.source_id}/${trigger.delivery_id}`)}>a webhook</a>
    case 'callback':
      return (
        <>
          <a href={linkTo(`/jobs/${trigger.job_id}`)}>another job</a>, at {trigger.event}
        </>
      )
    default:
      return <Submitter id={created_by} />
  }
}

const Submitter = ({ id }: { id: string | null }) => {
  const nameOf = useNames()
  if (id === null) return DASH
  return id === user.value?.id ? 'you' : (nameOf(id) ?? <ShortId id={id} />)
}
