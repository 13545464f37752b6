/** As many as in the library's own performance test, and one connection more than that. */
export const CONCURRENT_JOBS = 24
export const POOL_SIZE = CONCURRENT_JOBS + 1

/** The batching of the library's own performance test, which is also where its documentation leads. */
export const BATCHED = {
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}
