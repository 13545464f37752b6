/**
 * What a job takes unless it says otherwise. Jobs of this size never get a reservation, because nothing smaller can
 * overtake them: the index `ready_jobs_big` leaves them out.
 */
export const DEFAULT_RESOURCES = { cpu_units: 1, memory_mb: 64 } as const
