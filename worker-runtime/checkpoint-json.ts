const MAX_CHECKPOINT_BYTES = 256 * 1024

/** Throws if the state of a handler is too large to be kept, or not JSON. */
export const toCheckpointJson = (state: unknown): string => {
  const json = JSON.stringify(state ?? null)
  const bytes = Buffer.byteLength(json)
  if (bytes <= MAX_CHECKPOINT_BYTES) return json
  throw new Error(`A checkpoint of ${bytes} bytes: at most ${MAX_CHECKPOINT_BYTES} are kept.`)
}
