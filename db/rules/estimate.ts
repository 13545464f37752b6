/** Executions of one series that ended together: how many, their mean ln(runtime), and how far they lie around it. */
export type Sample = { runs: number; meanLog: number; spreadLog: number }

/** The code of the error of an attempt that ran into its timeout. */
export const TIMEOUT = 'timeout'

type Ended = { series_id: string; outcome: string; ranMs: number; error?: { code: string } }

/** One sample for each series that has something to learn. It is empty if all attempts of the series timed out. */
export const sampleRuntimes = (ended: readonly Ended[]): (Sample & { seriesId: string })[] => {
  const runtimes = new Map<string, number[]>()
  for (const end of ended) {
    if (end.outcome !== 'completed' && !isTimeout(end)) continue
    const known = runtimes.get(end.series_id) ?? []
    runtimes.set(end.series_id, known)
    if (end.outcome === 'completed') known.push(end.ranMs)
  }
  return [...runtimes].map(([seriesId, ranMs]) => ({ seriesId, ...sampleOf(ranMs) }))
}

/** Attempts that timed out, which would have taken at least as long. */
export const timeoutBounds = (ended: readonly Ended[]): { seriesId: string; log: number }[] =>
  ended.filter(isTimeout).map(({ series_id, ranMs }) => ({ seriesId: series_id, log: logOf(ranMs) }))

const isTimeout = ({ error }: Ended): boolean => error?.code === TIMEOUT

export const sampleOf = (runtimesMs: readonly number[]): Sample => sampleOfLogs(runtimesMs.map(logOf))

export const sampleOfLogs = (logs: readonly number[]): Sample => {
  if (logs.length === 0) return { runs: 0, meanLog: 0, spreadLog: 0 }
  const meanLog = mean(logs)
  return { runs: logs.length, meanLog, spreadLog: mean(logs.map((log) => Math.abs(log - meanLog))) }
}

/** Shorter runtimes differ by noise only, and cost the queue as much. */
const SHORTEST_MS = 1

/** ln(runtime in ms). */
export const logOf = (ms: number): number => Math.log(Math.max(ms, SHORTEST_MS))

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
