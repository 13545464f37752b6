export type LaneSum = { lane: number; jobs: number; predictedMs: number }

/** The queue of all in sums. */
export type QueueSnapshot = {
  /** Of the live workers. */
  slots: number
  /** What each running job will probably take yet. */
  runningRemainingMs: readonly number[]
  /** Ready jobs, the lowest lane first. */
  lanes: readonly LaneSum[]
  /** Of the work that is dispatched, what goes to the oldest. */
  ageShare: number
}

/** What a snapshot has become after some time: the slots have gone on working, lowest lane first. */
export const advanceQueue = (snapshot: QueueSnapshot, ms: number): QueueSnapshot => {
  if (ms <= 0) return snapshot
  const running = [...snapshot.runningRemainingMs].sort((a, b) => a - b)
  const busyMs = running.slice(0, snapshot.slots).reduce((sum, left) => sum + Math.min(left, ms), 0)
  let capacityMs = snapshot.slots * ms - busyMs
  const lanes = snapshot.lanes.flatMap((one) => {
    const doneMs = Math.min(capacityMs, one.predictedMs)
    capacityMs -= doneMs
    const left = one.predictedMs - doneMs
    return left > 0 ? { ...one, jobs: (one.jobs * left) / one.predictedMs, predictedMs: left } : []
  })
  const runningRemainingMs = running.flatMap((left) => (left > ms ? left - ms : []))
  return { ...snapshot, lanes, runningRemainingMs }
}

/** With jobs that have just joined the queue. */
export const addToQueue = (
  snapshot: QueueSnapshot,
  jobs: readonly { lane: number; p50Ms: number }[],
): QueueSnapshot => {
  const lanes = new Map(snapshot.lanes.map((one) => [one.lane, { ...one }]))
  for (const { lane, p50Ms } of jobs) {
    const sum = lanes.get(lane) ?? { lane, jobs: 0, predictedMs: 0 }
    sum.jobs++
    sum.predictedMs += p50Ms
    lanes.set(lane, sum)
  }
  return { ...snapshot, lanes: [...lanes.values()].sort((a, b) => a.lane - b.lane) }
}
