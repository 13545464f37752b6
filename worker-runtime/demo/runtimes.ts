/** How long the demo's server takes to answer, as data. */
export type Runtime =
  | { shape: 'steady'; ms: number }
  /** As long as what it is given is large. */
  | { shape: 'size-dependent'; baseMs: number; msPerKb: number }
  /** The service is busy and idle in turns, by the clock. */
  | { shape: 'periodic'; idleMs: number; busyMs: number; periodSeconds: number }
  /** The cache has it, or not. */
  | { shape: 'bimodal'; hitMs: number; missMs: number; missShare: number }
  /** The worker computes it: what that takes is not for the server to say. */
  | { shape: 'computed' }

export type Circumstances = { kb: number; atMs: number; random: () => number }

/** One draw, within a tenth of what it should be: nothing takes exactly as long as the last time. */
export const drawRuntimeMs = (runtime: Runtime, circumstances: Circumstances): number =>
  meanMs(runtime, circumstances) * (0.9 + 0.2 * circumstances.random())

const meanMs = (runtime: Runtime, { kb, atMs, random }: Circumstances): number => {
  switch (runtime.shape) {
    case 'steady':
      return runtime.ms
    case 'size-dependent':
      return runtime.baseMs + runtime.msPerKb * kb
    case 'periodic': {
      const turn = (2 * Math.PI * atMs) / (runtime.periodSeconds * 1000)
      return runtime.idleMs + ((runtime.busyMs - runtime.idleMs) * (1 - Math.cos(turn))) / 2
    }
    case 'bimodal':
      return random() < runtime.missShare ? runtime.missMs : runtime.hitMs
    case 'computed':
      return 0
  }
}
