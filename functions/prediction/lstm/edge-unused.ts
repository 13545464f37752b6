/**
 * Parts of tfjs-core that its engine refers to and the Worker never runs: automatic gradients, timing of kernels, printing of
 * tensors. wrangler.toml puts this in their place. Those are not packages: if wrangler or tfjs no longer have it so, the Worker
 * is a few kB larger, and works.
 */
const refuse = (): never => {
  throw new Error('Not in the Worker')
}

export const Profiler = ((): void => {}) as unknown as new () => object

export { refuse as backpropagateGradients, refuse as getFilteredNodesXToY, refuse as tensorToString }
