import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Job, JobType, Page } from '../../../api/answers.ts'
import { api } from '../../../api/api.ts'
import { Refusal } from '../../../api/refusal.ts'
import type { Resource } from '../../../api/use-resource.ts'
import { navigate } from '../../../router.ts'
import { Button } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { faultsFor } from '../../../ui/faults.ts'
import { duration } from '../../../ui/format.ts'
import { Failure, Loaded } from '../../../ui/notes.tsx'
import { showDone } from '../../../ui/toasts.tsx'
import { type Draft, POINTERS, toRequest } from './draft.ts'
import { discardDraft, kept, openDraft, renewKey } from './kept-draft.ts'
import { Outcome } from './outcome.tsx'
import { SubmitFields } from './submit-fields.tsx'
import { useForecast } from './use-forecast.ts'

type Props = { types: Resource<Page<JobType>>; onClose: () => void }

export const SubmitDialog = ({ types, onClose }: Props) => {
  useMemo(openDraft, [])
  return (
    <Dialog title="Submit a job" wide onClose={onClose}>
      <Loaded resource={types}>{({ items }) => <SubmitForm types={items} onClose={onClose} />}</Loaded>
    </Dialog>
  )
}

/** What the API says of the job, it says as one types; what was typed stays whatever it says. */
const SubmitForm = ({ types, onClose }: { types: JobType[]; onClose: () => void }) => {
  const { draft } = kept.value
  const { request, payloadError } = toRequest(draft)
  const { forecast, error, busy } = useForecast(request)
  const refused = useSignal<unknown>(undefined)
  const sending = useSignal(false)
  // What was refused is about what was sent: with the next key that is typed it is old.
  useEffect(() => {
    refused.value = undefined
  }, [draft])
  const { at, rest } = faultsFor(refused.value ?? error.value, Object.values(POINTERS))
  const faults = toFaults(at, payloadError)

  const submit = async (): Promise<void> => {
    if (!request || sending.value) return
    sending.value = true
    refused.value = undefined
    try {
      const headers = { 'idempotency-key': kept.value.idempotencyKey }
      const job = await api<Job>('/jobs', { method: 'POST', json: request, headers })
      discardDraft()
      showDone(`${job.name} is submitted.`)
      navigate(`/jobs/${job.id}`)
    } catch (reason) {
      refused.value = explain(reason)
    } finally {
      sending.value = false
    }
  }

  return (
    // The API judges the fields, also those that are folded away, where a browser could not show what it minds.
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <div class="dialog-body submit-job">
        <SubmitFields types={types} faults={faults} />
        <div class="submit-outcome" aria-busy={busy.value}>
          <Outcome forecast={forecast.value} hint={hintFor(draft, types, Object.keys(faults).length > 0)} />
          {rest !== undefined && <Failure error={rest} />}
        </div>
      </div>
      <footer class="dialog-foot">
        <p class="foot-outcome" aria-hidden="true">
          {forecast.value && `${duration(forecast.value.prediction.p50_ms)} predicted`}
        </p>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={!request} busy={sending.value}>
          Submit
        </Button>
      </footer>
    </form>
  )
}

export type DraftFaults = Partial<Record<keyof Draft, string>>

const toFaults = (at: Record<string, string>, payloadError: string | undefined): DraftFaults => {
  const fields = Object.entries(POINTERS) as [keyof Draft, string][]
  const faults = Object.fromEntries(fields.flatMap(([field, path]) => (at[path] ? [[field, at[path]]] : [])))
  return payloadError ? { ...faults, payload: payloadError } : faults
}

/** The answer to what was sent first has been lost, and then it was changed. Sent once more, it is another job. */
const explain = (reason: unknown): unknown => {
  if (!(reason instanceof Refusal) || reason.slug !== 'idempotency-key-reused') return reason
  renewKey()
  return new Refusal({
    title: 'A job was submitted already',
    detail:
      'It was sent as it stood here before, and its answer was lost. Press Submit to add this one, too.',
  })
}

const hintFor = (draft: Draft, types: readonly JobType[], isWrong: boolean): string => {
  if (types.length === 0) return 'No worker has announced a type of job yet. Start one: npm run worker.'
  if (!draft.type) return 'Choose a type to begin.'
  if (!draft.name.trim()) return 'With a name, you see here how long it will take and when it will be done.'
  return isWrong ? 'As soon as what is marked is right.' : 'One moment…'
}
