import { useSignal } from '@preact/signals'
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { LogLevel } from '../../../../db/rules/log-levels.ts'
import type { Attempt, Job } from '../../api/answers.ts'
import { CopyButton } from '../../ui/code.tsx'
import { counted } from '../../ui/format.ts'
import { Failure, Skeleton } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Segments } from '../../ui/segments.tsx'
import { LogFrame } from './log-frame.tsx'
import { atLeast, restartsOf, toText } from './log-lines.ts'
import type { JobStream } from './use-job-stream.ts'

const STEP = 2_000

const LEVELS = [
  { value: 'debug', label: 'All' },
  { value: 'info', label: 'Info' },
  { value: 'warn', label: 'Warn' },
  { value: 'error', label: 'Error' },
] as const

/** The log as it is written. All of it is here; the newest lines are shown. */
export const Logs = (props: { job: Job; attempts: readonly Attempt[]; stream: JobStream }) => {
  const { job, attempts, stream } = props
  const level = useSignal<LogLevel>('debug')
  const follows = useSignal(true)
  const shown = useSignal(STEP)
  const all = stream.log.value.lines
  const lines = atLeast(all, level.value)
  return (
    <Panel
      title="Log"
      about={all.length > 0 ? counted(all.length, 'line') : undefined}
      wide
      actions={
        all.length > 0 && (
          <>
            <Segments
              label="Least level"
              value={level.value}
              options={LEVELS}
              onChange={(value) => {
                level.value = value
              }}
            />
            <FollowToggle follows={follows.value} onChange={(value) => (follows.value = value)} />
            <CopyButton text={() => toText(lines)} label="Copy the log" />
          </>
        )
      }
    >
      {stream.error.value !== undefined && <Failure error={stream.error.value} retry={stream.readAgain} />}
      {all.length > 0 ? (
        <LogFrame
          lines={lines.slice(-shown.value)}
          restarts={restartsOf(attempts)}
          hidden={Math.max(0, lines.length - shown.value)}
          onEarlier={() => {
            follows.value = false
            shown.value += STEP
          }}
          follows={follows.value}
          onFollow={(value) => (follows.value = value)}
        />
      ) : (
        stream.error.value === undefined && <NoLines job={job} isRead={stream.isRead.value} />
      )}
    </Panel>
  )
}

const FollowToggle = ({ follows, onChange }: { follows: boolean; onChange: (value: boolean) => void }) => (
  <label class="choice log-follow">
    <input type="checkbox" checked={follows} onChange={(event) => onChange(event.currentTarget.checked)} />
    Follow the end
  </label>
)

const NoLines = ({ job, isRead }: { job: Job; isRead: boolean }) => {
  if (!isRead) return <Skeleton lines={3} />
  return (
    <p class="muted">
      {isFinished(job.status)
        ? 'It has written nothing.'
        : 'Nothing written yet: lines appear here as its handler writes them.'}
    </p>
  )
}
