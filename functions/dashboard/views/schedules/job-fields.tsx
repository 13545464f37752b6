import { PRIORITIES } from '../../../../db/rules/priority.ts'
import type { JobType } from '../../api/answers.ts'
import { Select, TextArea, TextField } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'

/** The job that each tick submits. */
export const JobFields = ({
  draft,
  set,
  at,
  types,
}: {
  draft: Draft
  set: (field: keyof Draft) => (value: string) => void
  at: Record<string, string | undefined>
  types: readonly JobType[]
}) => (
  <fieldset class="fields">
    <legend>The job of each tick</legend>
    <div class="form-row">
      <TextField
        label="Job name"
        maxLength={200}
        hint="Empty: as the schedule."
        value={draft.jobName}
        error={at['/job/name']}
        onInput={set('jobName')}
      />
      <TextField
        label="Type"
        literal
        required
        list="schedule-job-types"
        maxLength={64}
        value={draft.type}
        error={at['/job/type']}
        onInput={set('type')}
      />
      <datalist id="schedule-job-types">
        {types.map(({ type }) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      <Select
        label="Priority"
        value={draft.priority}
        options={PRIORITIES}
        error={at['/job/priority']}
        onChange={set('priority')}
      />
    </div>
    <TextArea
      label="Payload"
      mono
      rows={6}
      hint="A JSON object, as the type wants it."
      value={draft.payload}
      error={at['/job/payload']}
      onInput={set('payload')}
    />
    <details open={MORE.some((field) => at[field])}>
      <summary>Tags, limits and attempts</summary>
      <div class="form-row">
        <TextField
          label="Tags"
          hint="With commas between."
          value={draft.tags}
          error={at['/job/tags']}
          onInput={set('tags')}
        />
        <TextField
          label="Timeout, seconds"
          type="number"
          min={1}
          hint="Ends an attempt that runs longer."
          value={draft.timeoutSeconds}
          error={at['/job/timeout_seconds']}
          onInput={set('timeoutSeconds')}
        />
        <TextField
          label="Deadline, seconds"
          type="number"
          min={1}
          hint="After its tick."
          value={draft.deadlineSeconds}
          error={at['/job/deadline_seconds']}
          onInput={set('deadlineSeconds')}
        />
        <TextField
          label="Attempts"
          type="number"
          min={1}
          max={100}
          value={draft.maxAttempts}
          error={at['/job/retry/max_attempts']}
          onInput={set('maxAttempts')}
        />
      </div>
    </details>
  </fieldset>
)

const MORE = ['/job/tags', '/job/timeout_seconds', '/job/deadline_seconds', '/job/retry/max_attempts']
