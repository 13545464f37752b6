/** Codes that a client understands; 1012, which the platform sends when it restarts, means: come again. */
export const CLOSE = { badRequest: 4400, ended: 4401, removed: 4403, tryLater: 1013 } as const

/** Why somebody may not follow the stream. */
export type Refusal = 'ended' | 'removed' | 'full' | 'too-many' | 'no-job' | 'ticket' | 'unavailable'
