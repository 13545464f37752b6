/** Milliseconds of CLOCK_MONOTONIC, which all processes of a machine share (performance.now() starts with each). */
export const sharedNowMs = (): number => Number(process.hrtime.bigint()) / 1e6
