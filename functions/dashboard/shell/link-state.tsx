import { link } from '../live/live.ts'
import { now } from '../ui/clock.ts'

/** Whether what is shown is the present. */
export const LinkState = () => {
  const state = link.value
  if (state.kind === 'live') return <Mark kind="live" text="Live" />
  if (state.kind === 'connecting') return <Mark kind="connecting" text="Connecting…" />
  const seconds = Math.max(1, Math.ceil((state.retryAtMs - now.value) / 1_000))
  return <Mark kind="lost" text={`Connection lost. Trying again in ${seconds} s`} />
}

const Mark = ({ kind, text }: { kind: string; text: string }) => (
  <p class={`link-state ${kind}`} data-link={kind}>
    <span class="dot" aria-hidden="true" />
    {text}
  </p>
)

/** Across the page, after a while: what is shown may be old. For those who do not see it, said once. */
export const LostBanner = () => {
  const state = link.value
  const isLost = state.kind === 'lost' && now.value - state.sinceMs > 2_000
  return (
    <div role="status" aria-live="polite">
      {isLost && (
        <p class="banner">
          The connection is lost: what you see may be old. It comes back by itself; no need to reload.
        </p>
      )}
    </div>
  )
}
