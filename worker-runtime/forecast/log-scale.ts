/**
 * Work on a logarithmic scale, ln(1 + work / unit): a morning that is twice as busy is as far from an ordinary one whether ten
 * jobs come a minute or ten thousand, and nothing at all is 0. Order is kept, so a median there is the median here.
 */
export type LogScale = { toLog(workMs: number): number; fromLog(log: number): number }

export const createLogScale = (unitMs: number): LogScale => ({
  toLog: (workMs) => Math.log1p(workMs / unitMs),
  fromLog: (log) => unitMs * Math.expm1(Math.min(Math.max(log, 0), HIGHEST)),
})

/** e⁶⁰ of the ordinary: what a network says beyond that is not a number of milliseconds any more. */
const HIGHEST = 60
