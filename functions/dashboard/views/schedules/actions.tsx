import type { Job, Schedule } from '../../api/answers.ts'
import { post, remove } from '../../api/api.ts'
import { linkTo } from '../../router.ts'
import { ActionButton } from '../../ui/action-button.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { useDialog } from '../../ui/use-dialog.ts'
import { ScheduleForm } from './schedule-form.tsx'

/** What can be done with a schedule. */
export const Actions = (props: {
  schedule: Schedule
  spacious?: boolean
  onChanged: () => void
  onDeleted: () => void
}) => {
  const { spacious } = props
  const { id, name, paused } = props.schedule
  const dialog = useDialog<'form' | 'delete'>()
  const run = async (): Promise<void> => {
    const job = await post<Job>(`/schedules/${id}/run`)
    showDone(`Submitted a job of ${name}.`, { href: linkTo(`/jobs/${job.id}`), text: 'Look at it' })
    props.onChanged()
  }
  const turn = async (): Promise<void> => {
    await post(`/schedules/${id}/${paused ? 'resume' : 'pause'}`)
    showDone(paused ? `Resumed ${name}: it ticks from now on.` : `Paused ${name}: it does not tick.`)
    props.onChanged()
  }
  return (
    <div class={spacious ? 'actions' : 'row-actions'}>
      <Button small={!spacious} onClick={run} title={`Submit a job of ${name} now`}>
        Run now
      </Button>
      <ActionButton
        icon={paused ? 'play' : 'pause'}
        text={paused ? 'Resume' : 'Pause'}
        of={name}
        spacious={spacious}
        onClick={turn}
      />
      <ActionButton icon="edit" text="Change" of={name} spacious={spacious} onClick={dialog.opens('form')} />
      <ActionButton
        icon="trash"
        text="Delete"
        of={name}
        spacious={spacious}
        onClick={dialog.opens('delete')}
      />
      {dialog.isOpen('form') && (
        <ScheduleForm schedule={props.schedule} onSaved={props.onChanged} onClose={dialog.close} />
      )}
      {dialog.isOpen('delete') && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete schedule"
          danger
          onClose={dialog.close}
          onConfirm={async () => {
            await remove(`/schedules/${id}`)
            showDone(`Deleted the schedule ${name}.`)
            props.onDeleted()
          }}
        >
          <p>It does not tick any more, and its history goes with it. Jobs that it has made stay.</p>
        </Confirm>
      )}
    </div>
  )
}
