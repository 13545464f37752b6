import { useSignal } from '@preact/signals'
import type { JobType, Page, Queue } from '../../api/answers.ts'
import { get, post } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { summary } from '../../live/live.ts'
import { may } from '../../session/session.ts'
import { Badge } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { PauseType } from './pause-type.tsx'
import { useReloadOnChange } from './use-reload-on-change.ts'

/** Whether jobs of the organisation are started: all of them, or those of a type. */
export const QueueControl = () => {
  const queue = useResource((signal) => get<Queue>('/queue', {}, signal))
  const types = useResource((signal) => get<Page<JobType>>('/jobs/types', { limit: 100 }, signal))
  // Somebody else may pause it, too.
  useReloadOnChange(summary.value?.paused, queue.reload)
  const pause = async (type?: string): Promise<void> => {
    queue.data.value = await post<Queue>('/queue/pause', type ? { type } : {})
    showDone(type ? `No more jobs of the type ${type} are started.` : 'No more jobs are started.')
  }
  const resume = async (type?: string): Promise<void> => {
    queue.data.value = await post<Queue>('/queue/resume', type ? { type } : {})
    showDone(type ? `Jobs of the type ${type} are started again.` : 'Jobs are started again.')
  }
  return (
    <Panel
      title="Queue"
      about="A pause keeps jobs of your organisation from being started. They are still accepted, and what runs goes on."
    >
      <Loaded resource={queue}>
        {({ paused, paused_types }) => (
          <div class="stack">
            <WholeQueue paused={paused} pause={pause} resume={resume} />
            {paused_types.map((type) => (
              <div key={type} class="state-line">
                <p>
                  Jobs of the type <code>{type}</code> are not started. <Badge tone="amber">paused</Badge>
                </p>
                {may('queue:manage') && (
                  <Button small icon="play" onClick={() => resume(type)}>
                    {`Resume ${type}`}
                  </Button>
                )}
              </div>
            ))}
            {may('queue:manage') && (
              <PauseType
                types={(types.data.value?.items ?? [])
                  .map(({ type }) => type)
                  .filter((type) => !paused_types.includes(type))}
                pause={pause}
              />
            )}
          </div>
        )}
      </Loaded>
    </Panel>
  )
}

const WholeQueue = (props: { paused: boolean; pause: () => Promise<void>; resume: () => Promise<void> }) => {
  const asking = useSignal(false)
  return (
    <div class="state-line">
      <p>
        {props.paused ? 'No job is started, of any type. ' : 'Jobs are started. '}
        <Badge tone={props.paused ? 'amber' : 'green'}>{props.paused ? 'paused' : 'open'}</Badge>
      </p>
      {may('queue:manage') &&
        (props.paused ? (
          <Button small kind="primary" icon="play" onClick={() => props.resume()}>
            Resume the queue
          </Button>
        ) : (
          <Button
            small
            icon="pause"
            onClick={() => {
              asking.value = true
            }}
          >
            Pause the queue
          </Button>
        ))}
      {asking.value && (
        <Confirm
          title="Pause the queue?"
          action="Pause the queue"
          danger
          onConfirm={() => props.pause()}
          onClose={() => {
            asking.value = false
          }}
        >
          <p>
            No job of the organisation is started until somebody resumes the queue. Jobs are still accepted,
            and what runs goes on. Callbacks wait, too.
          </p>
        </Confirm>
      )}
    </div>
  )
}
