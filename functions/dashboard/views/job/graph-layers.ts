export type Edge = { from: string; to: string }

/** A job, or a bend of an edge that passes through the layer on its way to a later one. */
export type Place = { key: string; isBend: boolean }

/** Pieces of edges, each from one layer to the next. `edge` is the place of the whole one in what was given. */
export type Piece = { from: string; to: string; edge: number }

/**
 * Longest-path layering: every edge goes forward, and a job stands right behind the last one that it waits for. Edges that
 * pass over layers get a bend in each, so that they find a way between the jobs there.
 */
export const toLayers = (
  nodes: readonly string[],
  edges: readonly Edge[],
): { layers: Place[][]; pieces: Piece[] } => {
  const depth = depthsOf(nodes, edges)
  const layers: Place[][] = Array.from({ length: 1 + Math.max(-1, ...depth.values()) }, () => [])
  const pieces: Piece[] = []
  for (const key of nodes) layers[depth.get(key) ?? 0]?.push({ key, isBend: false })
  edges.forEach(({ from, to }, edge) => {
    let last = from
    for (let layer = (depth.get(from) ?? 0) + 1; layer < (depth.get(to) ?? 0); layer++) {
      const key = `${edge}:${layer}`
      layers[layer]?.push({ key, isBend: true })
      pieces.push({ from: last, to: key, edge })
      last = key
    }
    pieces.push({ from: last, to, edge })
  })
  return { layers, pieces }
}

const depthsOf = (nodes: readonly string[], edges: readonly Edge[]): Map<string, number> => {
  const outgoing = Map.groupBy(edges, ({ from }) => from)
  const open = new Map(nodes.map((key) => [key, 0]))
  for (const { to } of edges) open.set(to, (open.get(to) ?? 0) + 1)
  const depth = new Map(nodes.map((key) => [key, 0]))
  const queue = nodes.filter((key) => open.get(key) === 0)
  const roots = [...queue]
  for (let key = queue.shift(); key !== undefined; key = queue.shift()) {
    for (const { to } of outgoing.get(key) ?? []) {
      depth.set(to, Math.max(depth.get(to) ?? 0, (depth.get(key) ?? 0) + 1))
      const left = (open.get(to) ?? 1) - 1
      open.set(to, left)
      if (left === 0) queue.push(to)
    }
  }
  // What waits for nothing stands right before the first that waits for it: its edges stay short.
  for (const root of roots) {
    const next = (outgoing.get(root) ?? []).map(({ to }) => depth.get(to) ?? 1)
    if (next.length > 0) depth.set(root, Math.min(...next) - 1)
  }
  return depth
}
