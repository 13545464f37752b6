import { PRIORITIES, type Priority } from '../../../../../db/rules/priority.ts'
import type { JobType } from '../../../api/answers.ts'
import { Button } from '../../../ui/button.tsx'
import { Select, TextArea, TextField } from '../../../ui/field.tsx'
import { prettify } from '../../../ui/json-text.ts'
import { examplePayload, fieldsOf } from './example-payload.ts'
import { change, chooseType, kept } from './kept-draft.ts'
import type { DraftFaults } from './submit-dialog.tsx'

export const SubmitFields = ({ types, faults }: { types: readonly JobType[]; faults: DraftFaults }) => {
  const { draft } = kept.value
  const chosen = types.find(({ type }) => type === draft.type)
  const choose = (name: string): void => {
    const schema = types.find(({ type }) => type === name)?.payload_schema ?? {}
    chooseType(name, JSON.stringify(examplePayload(schema), null, 2))
  }
  return (
    <div class="form">
      <div class="form-row">
        <TextField
          label="Name"
          required
          maxLength={200}
          hint="Jobs of one type and name are runs of the same thing."
          value={draft.name}
          error={faults.name}
          onInput={(name) => change({ name })}
        />
        <Select
          label="Type"
          value={draft.type}
          error={faults.type}
          hint={chosen?.workers === 0 ? 'No live worker handles it: it will wait for one.' : undefined}
          options={[{ value: '', label: 'Choose…' }, ...types.map(({ type }) => type)]}
          onChange={choose}
        />
      </div>
      <div class="payload-field">
        <TextArea
          label="Payload"
          mono
          rows={9}
          hint={chosen && fieldsHint(chosen)}
          value={draft.payload}
          error={faults.payload}
          onInput={(payload) => change({ payload })}
        />
        <Button kind="quiet" small onClick={() => change({ payload: prettify(draft.payload) })}>
          Prettify
        </Button>
      </div>
      <div class="form-row">
        <Select
          label="Priority"
          value={draft.priority}
          error={faults.priority}
          options={PRIORITIES}
          onChange={(priority) => change({ priority: priority as Priority })}
        />
        <TextField
          label="Tags"
          literal
          placeholder="nightly, reports"
          value={draft.tags}
          error={faults.tags}
          onInput={(tags) => change({ tags })}
        />
      </div>
      <Advanced faults={faults} />
    </div>
  )
}

const Advanced = ({ faults }: { faults: DraftFaults }) => {
  const { draft } = kept.value
  const { deadline, runAt, timeoutSeconds, maxAttempts, dependsOn, fairnessKey } = faults
  const isWrong = Boolean(deadline ?? runAt ?? timeoutSeconds ?? maxAttempts ?? dependsOn ?? fairnessKey)
  return (
    <details class="advanced" {...(isWrong && { open: true })}>
      <summary>Times, attempts, dependencies and fairness</summary>
      <div class="form">
        <div class="form-row">
          <TextField
            label="Deadline"
            type="datetime-local"
            hint="When it should be done."
            value={draft.deadline}
            error={deadline}
            onInput={(value) => change({ deadline: value })}
          />
          <TextField
            label="Run at"
            type="datetime-local"
            hint="Not before this time."
            value={draft.runAt}
            error={runAt}
            onInput={(value) => change({ runAt: value })}
          />
        </div>
        <div class="form-row">
          <TextField
            label="Timeout, seconds"
            type="number"
            min={1}
            hint="Ends an attempt that runs longer."
            value={draft.timeoutSeconds}
            error={timeoutSeconds}
            onInput={(value) => change({ timeoutSeconds: value })}
          />
          <TextField
            label="Attempts at most"
            type="number"
            min={1}
            max={100}
            placeholder="3"
            value={draft.maxAttempts}
            error={maxAttempts}
            onInput={(value) => change({ maxAttempts: value })}
          />
        </div>
        <TextField
          label="Depends on"
          literal
          placeholder="Ids of jobs that must have completed before"
          value={draft.dependsOn}
          error={dependsOn}
          onInput={(value) => change({ dependsOn: value })}
        />
        <TextField
          label="Fairness key"
          literal
          maxLength={200}
          hint="Which of your own tenants the job is for. Tenants get equal shares of the workers."
          value={draft.fairnessKey}
          error={fairnessKey}
          onInput={(value) => change({ fairnessKey: value })}
        />
      </div>
    </details>
  )
}

const fieldsHint = ({ payload_schema }: JobType): string => {
  const { needed, optional } = fieldsOf(payload_schema)
  const parts = [
    needed.length > 0 && `Needs ${needed.join(', ')}.`,
    optional.length > 0 && `May have ${optional.join(', ')}.`,
  ]
  return parts.filter(Boolean).join(' ')
}
