import { useSignal } from '@preact/signals'
import type { JobType, Page, Schedule } from '../../api/answers.ts'
import { get, patch, post } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { Select, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { type Draft, draftOf, emptyDraft, FIELDS, requestOf } from './draft.ts'
import { JobFields } from './job-fields.tsx'
import { NextRuns } from './next-runs.tsx'
import { ownTimeZone, timeZones } from './tick-time.ts'
import { usePreview } from './use-preview.ts'

/** Makes a schedule, or changes the one that is given. */
export const ScheduleForm = (props: {
  schedule?: Schedule | undefined
  onSaved: (saved: Schedule) => void
  onClose: () => void
}) => {
  const draft = useSignal<Draft>(props.schedule ? draftOf(props.schedule) : emptyDraft(ownTimeZone()))
  const types = useResource(() => get<Page<JobType>>('/jobs/types', { limit: 100 }))
  const { name, cron, timezone, catchUp } = draft.value
  const preview = usePreview(cron, timezone)
  const set =
    <Field extends keyof Draft>(field: Field) =>
    (value: string) => {
      draft.value = { ...draft.value, [field]: value as Draft[Field] }
    }
  const save = async (): Promise<void> => {
    const request = requestOf(draft.value)
    const saved = props.schedule
      ? await patch<Schedule>(`/schedules/${props.schedule.id}`, request)
      : await post<Schedule>('/schedules', request)
    showDone(`Saved the schedule ${saved.name}.`)
    props.onSaved(saved)
    props.onClose()
  }
  return (
    <FormDialog
      title={props.schedule ? `Change ${props.schedule.name}` : 'New schedule'}
      action={props.schedule ? 'Save' : 'Create schedule'}
      wide
      fields={FIELDS}
      onSubmit={save}
      onClose={props.onClose}
    >
      {(at) => (
        <>
          <div class="form-row">
            <TextField
              label="Name"
              required
              maxLength={200}
              placeholder="morning report"
              value={name}
              error={at['/name']}
              onInput={set('name')}
            />
            <Select
              label="Missed ticks"
              hint="What is made up for after no worker was there."
              value={catchUp}
              options={CATCH_UPS}
              error={at['/catch_up']}
              onChange={set('catchUp')}
            />
          </div>
          <div class="form-row">
            <TextField
              label="Cron expression"
              literal
              required
              maxLength={200}
              hint="Minute, hour, day of month, month, day of week. Or @daily."
              value={cron}
              error={preview.value.faults['/cron'] ?? at['/cron']}
              onInput={set('cron')}
            />
            <TextField
              label="Time zone"
              literal
              required
              list="time-zones"
              hint="The zone whose clocks count."
              value={timezone}
              error={preview.value.faults['/timezone'] ?? at['/timezone']}
              onInput={set('timezone')}
            />
            <datalist id="time-zones">
              {ZONES.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </div>
          <NextRuns runs={preview.value.runs} cron={cron} timezone={timezone} />
          <JobFields draft={draft.value} set={set} at={at} types={types.data.value?.items ?? []} />
        </>
      )}
    </FormDialog>
  )
}

const ZONES = timeZones()

const CATCH_UPS = [
  { value: 'one', label: 'Run the newest, once' },
  { value: 'skip', label: 'Run none' },
  { value: 'all', label: 'Run all, at most 100' },
]
