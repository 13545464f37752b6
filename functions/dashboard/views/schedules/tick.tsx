import type { Tick } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { Badge } from '../../ui/badges.tsx'

const TONES = { fired: 'green', refused: 'red', skipped: 'amber' } as const

/** What became of a tick, with the way to its job. */
export const TickOutcome = ({ tick }: { tick: Tick }) => (
  <span class="badge-line">
    <Badge tone={TONES[tick.outcome]}>{tick.outcome}</Badge>
    {tick.job_id && <a href={linkTo(`/jobs/${tick.job_id}`)}>its job</a>}
  </span>
)
