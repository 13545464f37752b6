import { Fragment } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { LogLine } from '../../api/answers.ts'
import { Button } from '../../ui/button.tsx'
import { count, exactTime } from '../../ui/format.ts'
import { startsAttempt } from './log-lines.ts'

/** How near to the end counts as there: a line that is half in sight. */
const NEAR_PX = 24

/** Scrolls by itself, and stays at the end while it follows. Whoever scrolls up stops that. */
export const LogFrame = (props: {
  lines: readonly LogLine[]
  /** When attempts have started that bear the number of one before. */
  restarts: readonly string[]
  hidden: number
  onEarlier: () => void
  follows: boolean
  onFollow: (value: boolean) => void
}) => {
  const { lines, restarts, hidden, follows } = props
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
            {startsAttempt(line, lines[n - 1], restarts) && (
              <li class="log-attempt">Attempt {line.attempt}</li>
            )}
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
