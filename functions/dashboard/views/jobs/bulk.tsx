import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Sweep } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { count, counted } from '../../ui/format.ts'
import { showDone } from '../../ui/toasts.tsx'
import { actionsFor, type BulkAction, type JobFilter } from './filter.ts'

const WORDS = {
  cancel: {
    verb: 'Cancel',
    done: 'cancelled',
    about: 'Those that run are told to stop. Jobs that depend on them fail, unless they wait for a retry.',
  },
  retry: { verb: 'Retry', done: 'queued again', about: 'Each gets all of its attempts again.' },
}

/** What can be done with all jobs that match, however many: counted first. */
export const Bulk = ({ filter }: { filter: JobFilter }) => {
  const asked = useSignal<{ action: BulkAction; filter: JobFilter; found: Sweep } | undefined>(undefined)
  const ask = async (action: BulkAction): Promise<void> => {
    const found = await post<Sweep>(`/jobs/bulk/${action}`, { filter, dry_run: true })
    if (found.matched === 0) showDone(`None of these jobs can be ${WORDS[action].done}.`)
    else asked.value = { action, filter, found }
  }
  return (
    <>
      {actionsFor(filter).map((action) => (
        <Button key={action} onClick={() => ask(action)}>
          {WORDS[action].verb} all that match…
        </Button>
      ))}
      {asked.value && (
        <Ask
          {...asked.value}
          onClose={() => {
            asked.value = undefined
          }}
        />
      )}
    </>
  )
}

const Ask = (props: { action: BulkAction; filter: JobFilter; found: Sweep; onClose: () => void }) => {
  const { action, filter, found } = props
  const { verb, done, about } = WORDS[action]
  const changed = useSignal<number | undefined>(undefined)
  const closed = useRef(false)
  useEffect(
    () => () => {
      closed.current = true
    },
    [],
  )
  /** One request takes a bounded number. Whoever closes the dialog stops it after the one that is under way. */
  const act = async (): Promise<void> => {
    let sweep: Sweep
    changed.value ??= 0
    do {
      sweep = await post<Sweep>(`/jobs/bulk/${action}`, { filter })
      changed.value += sweep.changed
    } while (!sweep.done && sweep.changed > 0 && !closed.current)
    showDone(`${counted(changed.value, 'job')} ${done}${sweep.done ? '.' : '; there are more.'}`)
  }
  const size = found.done ? counted(found.matched, 'job') : `${count(found.matched)} jobs or more`
  return (
    <Confirm
      title={`${verb} ${size}?`}
      action={`${verb} ${size}`}
      danger={action === 'cancel'}
      onConfirm={act}
      onClose={props.onClose}
    >
      <p>
        All that match {describe(filter)}. {about}
      </p>
      <div role="status">
        {changed.value !== undefined && (
          <p class="bulk-progress">
            <progress aria-label="Progress" max={found.matched} value={changed.value} />
            {count(changed.value)} of {size}
          </p>
        )}
      </div>
    </Confirm>
  )
}

const describe = (filter: JobFilter): string =>
  Object.entries(filter)
    .map(([field, value]) => `${field} “${value}”`)
    .join(', ')
