/**
 * The states of a job. The table that holds the job's row is the state; nothing stores it twice.
 *
 *   submit ──▶ pending ──(run_at)──▶ ready ──(claim)──▶ running ──▶ completed
 *      └────────────────────────────▶ ▲ ▲                │  │ └──▶ failed     (no attempts left)
 *                                     │ └─(release, lost lease)  │
 *                                     └──(backoff over)── retrying ◀┘
 */
export const JOB_STATES = ['pending', 'ready', 'running', 'retrying', 'completed', 'failed'] as const

export type JobState = (typeof JOB_STATES)[number]
