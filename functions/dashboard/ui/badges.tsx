import type { JobState } from '../../../db/rules/job-states.ts'
import type { Priority } from '../../../db/rules/priority.ts'

type Tone = 'neutral' | 'blue' | 'accent' | 'green' | 'amber' | 'red' | 'violet'

export const Badge = ({ tone = 'neutral', children }: { tone?: Tone; children: string }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

const STATE_TONES: Record<JobState, Tone> = {
  pending: 'neutral',
  blocked: 'violet',
  ready: 'blue',
  running: 'accent',
  retrying: 'amber',
  completed: 'green',
  failed: 'red',
  cancelled: 'neutral',
}

/** The shape of the mark tells states apart without colours. */
export const StatusBadge = ({ status }: { status: JobState }) => (
  <span class={`badge status ${STATE_TONES[status]}`} data-status={status}>
    <span class={`mark ${status}`} aria-hidden="true" />
    {status}
  </span>
)

const PRIORITY_TONES: Record<Priority, Tone> = {
  critical: 'red',
  high: 'amber',
  normal: 'neutral',
  low: 'neutral',
}

export const PriorityBadge = ({ priority }: { priority: Priority }) =>
  priority === 'normal' ? (
    <span class="muted">normal</span>
  ) : (
    <Badge tone={PRIORITY_TONES[priority]}>{priority}</Badge>
  )

export const Tags = ({ tags }: { tags: readonly string[] }) => (
  <>
    {tags.map((tag) => (
      <span key={tag} class="tag">
        {tag}
      </span>
    ))}
  </>
)
