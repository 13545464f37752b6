/** Every lane that a claim may look at lies from the one to before the other; `lane_of` stays far within. */
export const LOWEST_LANE = -5_000
export const FIRST_PARKED_LANE = 5_000

/** A tenth in ln wide: jobs of one lane differ by less than 10 % in rank. `lane_of` is the same rule in SQL. */
export const laneOf = (rank: number): number => Math.floor(Math.min(Math.max(rank, -100), 100) * 10)

/** The share of the work that goes to the oldest jobs, whatever their lane. */
export const AGE_SHARE = 0.25
