import { useSignal } from '@preact/signals'
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Job } from '../../api/answers.ts'
import { patch, post } from '../../api/api.ts'
import { linkTo } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Badge, PriorityBadge, StatusBadge, Tags } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/code.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { showDone } from '../../ui/toasts.tsx'

export const JobHead = ({ job, onChange }: { job: Job; onChange: () => void }) => (
  <>
    <p class="crumbs">
      <a href={linkTo('/jobs')}>Jobs</a>
    </p>
    <PageHead title={job.name} about={<About job={job} />}>
      {may('jobs:manage') && <Actions job={job} onChange={onChange} />}
    </PageHead>
  </>
)

/** Stands in a paragraph: only what may be in one. */
const About = ({ job }: { job: Job }) => (
  <span class="job-about">
    <StatusBadge status={job.status} />
    {job.slow && <Badge tone="amber">slow</Badge>}
    {job.deadline_at_risk && (
      <Badge tone="red">{isFinished(job.status) ? 'deadline missed' : 'deadline at risk'}</Badge>
    )}
    <span>{job.type}</span>
    <span>{job.priority === 'normal' ? 'normal' : <PriorityBadge priority={job.priority} />} priority</span>
    {job.tags.length > 0 && (
      <span>
        <Tags tags={job.tags} />
      </span>
    )}
    <span class="job-id">
      <code>{job.id}</code>
      <CopyButton text={job.id} label="Copy id" />
    </span>
  </span>
)

const Actions = ({ job, onChange }: { job: Job; onChange: () => void }) => {
  const cancelling = useSignal(false)
  const retry = async (): Promise<void> => {
    await post(`/jobs/${job.id}/retry`)
    showDone(`${job.name} is back in the queue, with all its attempts.`)
    onChange()
  }
  const cancel = async (): Promise<void> => {
    await patch(`/jobs/${job.id}/cancel`)
    showDone(`${job.name} is cancelled.`)
    onChange()
  }
  return (
    <>
      {!isFinished(job.status) && (
        <Button
          icon="close"
          onClick={() => {
            cancelling.value = true
          }}
        >
          Cancel
        </Button>
      )}
      {(job.status === 'failed' || job.status === 'cancelled') && (
        <Button icon="refresh" kind="primary" onClick={retry}>
          Retry
        </Button>
      )}
      {cancelling.value && (
        <Confirm
          title="Cancel the job?"
          action="Cancel the job"
          danger
          onConfirm={cancel}
          onClose={() => {
            cancelling.value = false
          }}
        >
          <p>
            <strong>{job.name}</strong>{' '}
            {job.status === 'running' ? 'is stopped within a second' : 'will not run'}. Jobs that depend on it
            fail, unless they are to wait for it. It can be retried.
          </p>
        </Confirm>
      )}
    </>
  )
}
