import { now } from '../../ui/clock.ts'
import { exactTime, relativeTime } from '../../ui/format.ts'
import { cronInWords } from './cron-words.ts'
import { tickTime } from './tick-time.ts'

/** The expression in words, and when it ticks next. */
export const NextRuns = (props: { runs: readonly string[]; cron: string; timezone: string }) => (
  <div class="next-runs" role="status" aria-label="Next ticks">
    <p>{props.runs.length > 0 ? (cronInWords(props.cron) ?? 'Next ticks') : 'Next ticks'}</p>
    {props.runs.length === 0 ? (
      <p class="muted">Not known yet.</p>
    ) : (
      <ol>
        {props.runs.map((at, place) => (
          <li key={at}>
            <time dateTime={at} title={exactTime(at)}>
              {tickTime(at, props.timezone, props.cron)}
            </time>
            {place === 0 && <span class="muted"> {relativeTime(Date.parse(at), now.value)}</span>}
          </li>
        ))}
      </ol>
    )}
  </div>
)
