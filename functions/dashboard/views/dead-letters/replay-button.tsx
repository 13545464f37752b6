import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Replayed } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { counted } from '../../ui/format.ts'
import { showDone, showFailure } from '../../ui/toasts.tsx'
import { replay, type Selection } from './replay.ts'

/** Asks first: what is replayed runs again, with all its effects. */
export const ReplayButton = (props: {
  selection: Selection
  /** How many there are; not all may be known. */
  jobs: number
  isMore?: boolean
  small?: boolean
  children: string
  about: ComponentChildren
  onDone: () => void
}) => {
  const asking = useSignal(false)
  const most = props.isMore ? Number.POSITIVE_INFINITY : props.jobs
  const run = async (): Promise<void> => {
    const send = (selection: Selection) => post<Replayed>('/dlq/replay', selection)
    const { replayed, stopped } = await replay(send, props.selection, most)
    showDone(
      replayed === 0 ? 'They have been replayed already.' : `${counted(replayed, 'job')} back in the queue.`,
    )
    if (stopped !== undefined) showFailure(stopped)
    props.onDone()
  }
  const many = `${props.isMore ? 'more than ' : ''}${counted(props.jobs, 'job')}`
  return (
    <>
      <Button
        icon="refresh"
        small={props.small ?? false}
        onClick={() => {
          asking.value = true
        }}
      >
        {props.children}
      </Button>
      {asking.value && (
        <Confirm
          title={`Replay ${many}?`}
          action={`Replay ${many}`}
          onConfirm={run}
          onClose={() => {
            asking.value = false
          }}
        >
          <p>{props.about}</p>
          <p class="muted">Each goes back into the queue and starts over with all its attempts.</p>
        </Confirm>
      )}
    </>
  )
}
