/** Whatever is predicted: what takes less than a second is not slow. `lease_gauges` and the views of a job say the same. */
export const LEAST_SLOW_MS = 1_000
