import type { DeliverySummary } from '../../api/answers.ts'
import { Badge } from '../../ui/badges.tsx'

type Status = DeliverySummary['status']

const TONES = {
  accepted: 'green',
  duplicate: 'blue',
  filtered: 'neutral',
  rejected: 'red',
  quarantined: 'amber',
} as const satisfies Record<Status, string>

export const STATUSES = Object.keys(TONES) as Status[]

/** What became of a delivery. */
export const Outcome = ({ status }: { status: Status }) => <Badge tone={TONES[status]}>{status}</Badge>

export const OUTCOME_WORDS: Record<Status, string> = {
  accepted: 'It became a job.',
  duplicate: 'The event had a job already.',
  filtered: 'The filter does not take it.',
  rejected: 'Nobody has proved that it is from the sender.',
  quarantined: 'It should have become a job, and could not.',
}
