import { useSignal } from '@preact/signals'
import { Fragment } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { LogLevel } from '../../../../db/rules/log-levels.ts'
import type { Job, LogLine } from '../../api/answers.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/code.tsx'
import { count, exactTime } from '../../ui/format.ts'
import { Failure, Skeleton } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Segments } from '../../ui/segments.tsx'
import { atLeast, toText } from './log-lines.ts'
import type { JobStream } from './use-job-stream.ts'

const STEP = 2_000

const LEVELS = [
  { value: 'debug', label: 'All' },
  { value: 'info', label: 'Info' },
  { value: 'warn', label: 'Warn' },
  { value: 'error', label: 'Error' },
] as const

/** The log as it is written. All of it is here; the newest lines are shown. */
export const Logs = ({ job, stream }: { job: Job; stream: JobStream }) => {
  const level = useSignal<LogLevel>('debug')
  const follows = useSignal(true)
  const shown = useSignal(STEP)
  const all = stream.log.value.lines
  const lines = atLeast(all, level.value)
  return (
    <Panel
      title="Log"
      about={all.length > 0 ? `${count(all.length)} ${all.length === 1 ? 'line' : 'lines'}` : undefined}
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
            <CopyButton text={toText(lines)} label="Copy the log" />
          </>
        )
      }
    >
      {stream.error.value !== undefined && <Failure error={stream.error.value} retry={stream.readAgain} />}
      {all.length > 0 ? (
        <Lines
          lines={lines.slice(-shown.value)}
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

/** How near to the end counts as there: a line that is half in sight. */
const NEAR_PX = 24

const Lines = (props: {
  lines: readonly LogLine[]
  hidden: number
  onEarlier: () => void
  follows: boolean
  onFollow: (value: boolean) => void
}) => {
  const { lines, hidden, follows } = props
  const frame = useRef<HTMLElement>(null)
  const keptPx = useRef<number | undefined>(undefined)
  useLayoutEffect(() => {
    const { current } = frame
    if (!current) return
    if (follows) current.scrollTop = current.scrollHeight
    // What was in sight stays there when earlier lines come above it.
    else if (keptPx.current !== undefined) current.scrollTop = current.scrollHeight - keptPx.current
    keptPx.current = undefined
  }, [lines.at(-1), lines.length, follows])
  const showEarlier = (): void => {
    if (frame.current) keptPx.current = frame.current.scrollHeight - frame.current.scrollTop
    props.onEarlier()
  }
  return (
    <section
      class="log"
      ref={frame}
      aria-label="Lines of the log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        const isAtEnd = scrollTop + clientHeight >= scrollHeight - NEAR_PX
        if (isAtEnd !== follows) props.onFollow(isAtEnd)
      }}
    >
      {hidden > 0 && (
        <p class="log-earlier">
          <Button small onClick={showEarlier}>
            {`Show earlier lines (${count(hidden)})`}
          </Button>
        </p>
      )}
      {lines.length === 0 && <p class="muted">No line of this level.</p>}
      <ol>
        {lines.map((line, n) => (
          <Fragment key={hidden + n}>
            {line.attempt !== lines[n - 1]?.attempt && <li class="log-attempt">Attempt {line.attempt}</li>}
            <li class={`log-line ${line.level}`}>
              <time dateTime={line.at} title={exactTime(line.at)}>
                {clock.format(new Date(line.at))}
              </time>
              <span class="log-level">{line.level}</span>
              <span class="log-message">{line.message}</span>
            </li>
          </Fragment>
        ))}
      </ol>
    </section>
  )
}

const clock = new Intl.DateTimeFormat('en-GB', {
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
})
