/**
 * The pinball loss: with e = target − y, an answer too low costs q · e, one too high (1 − q) · −e. It is least when a
 * share q of the targets lies below y, so the head that minimises it predicts the quantile q.
 *
 * Each head has its quantile; their losses are added, and averaged over the steps by the steps' weights. A weight of 0
 * masks a step. A censored target is a lower bound (an attempt that was ended before it was done): an answer above it
 * may well be right, so it costs nothing and pulls nowhere.
 */
export type Targets = {
  targets: Float32Array // (T·B)
  weights: Float32Array // (T·B)
  censored?: Uint8Array | undefined // (T·B)
}

export const pinballLoss = (
  y: Float32Array, // (T·B, K)
  { targets, weights, censored }: Targets,
  quantiles: readonly number[], // (K)
): { loss: number; dy: Float32Array } => {
  const K = quantiles.length
  if (targets.length * K !== y.length || weights.length !== targets.length) {
    throw new Error(`${y.length} answers for ${targets.length} targets with ${weights.length} weights`)
  }
  const totalWeight = weights.reduce((sum, weight) => sum + weight, 0)
  const dy = new Float32Array(y.length) // (T·B, K)
  let loss = 0
  for (let n = 0; n < targets.length; n++) {
    const weight = weights[n] as number
    if (weight === 0) continue
    const share = weight / totalWeight
    for (let k = 0; k < K; k++) {
      const q = quantiles[k] as number
      const e = (targets[n] as number) - (y[n * K + k] as number)
      if (e < 0 && censored?.[n]) continue
      loss += share * (e > 0 ? q * e : (q - 1) * e)
      // At e = 0 the slope jumps from 1 − q to −q; 0 lies between them, and an answer that is exact stays.
      if (e !== 0) dy[n * K + k] = share * (e > 0 ? -q : 1 - q)
    }
  }
  return { loss, dy }
}
