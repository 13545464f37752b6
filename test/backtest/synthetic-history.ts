import { createRandom } from '../../functions/prediction/lstm/random.ts'

/** A history with short and long jobs of several organisations, more than two workers can take at times. */
export const syntheticHistory = (jobs: number, seed = 1): string => {
  const random = createRandom(seed)
  let atS = 0
  const lines = Array.from({ length: jobs }, (_, n) => {
    atS += -Math.log(1 - random()) * 2
    const kind = Math.floor(random() * 6)
    const runtimeMs = Math.round(1000 * 3 ** (kind - 2) * Math.exp(0.4 * (random() - 0.5)))
    const parent = n > 5 && random() < 0.1 ? String(n - 3) : ''
    return [n + 1, atS.toFixed(3), runtimeMs, `type${kind % 2}`, `job${kind}`, `org${kind % 3}`, parent].join(
      ',',
    )
  })
  return ['id,submit_s,runtime_ms,type,name,org,depends_on', ...lines].join('\n')
}
