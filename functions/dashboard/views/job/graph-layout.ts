/**
 * Where the jobs of a graph stand: layers from left to right (graph-layers.ts), ordered within a layer by the mean place of
 * their neighbours (barycentre), a few sweeps in each direction, and then moved as near to their neighbours as the order
 * and the room that each needs allow.
 */
import { type Edge, type Piece, type Place, toLayers } from './graph-layers.ts'

export type Size = { width: number; height: number; columnGap: number; rowGap: number }
export type Point = { x: number; y: number }

export type Layout = {
  width: number
  height: number
  /** The upper left corner of each node. */
  nodes: Map<string, Point>
  /** For each edge, in the order given, from the right side of one node to the left side of the other. */
  edges: Point[][]
}

const SWEEPS = 4

export const layOut = (nodes: readonly string[], edges: readonly Edge[], size: Size): Layout => {
  const { layers, pieces } = toLayers(nodes, edges)
  const neighbours = neighboursOf(pieces)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    orderLayers(layers, neighbours.before)
    orderLayers(layers.toReversed(), neighbours.after)
  }
  const middles = placeLayers(layers, neighbours, size)
  return draw({ layers, pieces, middles, edges }, size)
}

type Neighbours = { before: Map<string, string[]>; after: Map<string, string[]> }

const neighboursOf = (pieces: readonly Piece[]): Neighbours => {
  const before = new Map<string, string[]>()
  const after = new Map<string, string[]>()
  for (const { from, to } of pieces) {
    before.set(to, [...(before.get(to) ?? []), from])
    after.set(from, [...(after.get(from) ?? []), to])
  }
  return { before, after }
}

/** Sorts each layer by where the neighbours on one side stand. Who has none there stays where it is. */
const orderLayers = (layers: readonly Place[][], towards: Map<string, string[]>): void => {
  const position = new Map<string, number>()
  for (const layer of layers) {
    const wished = new Map(
      layer.map(({ key }, n) => [
        key,
        mean((towards.get(key) ?? []).flatMap((k) => position.get(k) ?? [])) ?? n,
      ]),
    )
    layer.sort((a, b) => (wished.get(a.key) ?? 0) - (wished.get(b.key) ?? 0))
    layer.forEach(({ key }, n) => {
      position.set(key, n)
    })
  }
}

const heightOf = ({ isBend }: Place, { height, rowGap }: Size): number => (isBend ? rowGap : height)

/** The middle of each place, from top to bottom. */
const placeLayers = (
  layers: readonly Place[][],
  { before, after }: Neighbours,
  size: Size,
): Map<string, number> => {
  const middles = new Map<string, number>()
  for (const layer of layers)
    assign(
      layer,
      layer.map(() => 0),
      size,
      middles,
    )
  const all = (key: string): string[] => [...(before.get(key) ?? []), ...(after.get(key) ?? [])]
  const pass = (order: readonly Place[][], towards: (key: string) => string[]): void => {
    for (const layer of order) {
      const wished = layer.map(
        ({ key }) => mean(towards(key).map((other) => middles.get(other) ?? 0)) ?? middles.get(key) ?? 0,
      )
      assign(layer, wished, size, middles)
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    pass(layers, (key) => before.get(key) ?? [])
    pass(layers.toReversed(), (key) => after.get(key) ?? [])
  }
  pass(layers, all)
  return middles
}

/**
 * The places nearest to the wished ones that keep the order and the room between: least squares under an order, which is
 * what pooling neighbours that are in each other's way gives.
 */
const assign = (
  layer: readonly Place[],
  wished: number[],
  size: Size,
  middles: Map<string, number>,
): void => {
  const offsets: number[] = []
  layer.forEach((place, n) => {
    const above = layer[n - 1]
    const room = above ? (heightOf(above, size) + heightOf(place, size)) / 2 + size.rowGap : 0
    offsets.push((offsets[n - 1] ?? 0) + room)
  })
  const pools: { sum: number; count: number }[] = []
  wished.forEach((wish, n) => {
    let pool = { sum: wish - (offsets[n] ?? 0), count: 1 }
    for (
      let last = pools.at(-1);
      last && last.sum / last.count > pool.sum / pool.count;
      last = pools.at(-1)
    ) {
      pools.pop()
      pool = { sum: pool.sum + last.sum, count: pool.count + last.count }
    }
    pools.push(pool)
  })
  const bases = pools.flatMap(({ sum, count }) => Array.from({ length: count }, () => sum / count))
  layer.forEach(({ key }, n) => {
    middles.set(key, (bases[n] ?? 0) + (offsets[n] ?? 0))
  })
}

const draw = (
  graph: { layers: Place[][]; pieces: Piece[]; middles: Map<string, number>; edges: readonly Edge[] },
  size: Size,
): Layout => {
  const { layers, pieces, middles } = graph
  const { width, height, columnGap } = size
  const edgeOf = (place: Place, side: 1 | -1): number =>
    (middles.get(place.key) ?? 0) + (side * heightOf(place, size)) / 2
  const top = Math.min(...layers.flat().map((place) => edgeOf(place, -1)))
  const bottom = Math.max(...layers.flat().map((place) => edgeOf(place, 1)))
  const column = new Map(layers.flatMap((layer, n) => layer.map(({ key }) => [key, n * (width + columnGap)])))
  const at = (key: string): Point => ({ x: column.get(key) ?? 0, y: (middles.get(key) ?? 0) - top })
  const jobs = layers.flat().filter(({ isBend }) => !isBend)
  const lines = Map.groupBy(pieces, ({ edge }) => edge)
  return {
    width: Math.max(0, layers.length * (width + columnGap) - columnGap),
    height: middles.size > 0 ? bottom - top : 0,
    nodes: new Map(jobs.map(({ key }) => [key, { x: at(key).x, y: at(key).y - height / 2 }])),
    // A bend is crossed straight, as wide as a job: the edge turns only in the gap between layers.
    edges: graph.edges.map((_, n) =>
      (lines.get(n) ?? []).flatMap(({ from, to }) => [{ x: at(from).x + width, y: at(from).y }, at(to)]),
    ),
  }
}

const mean = (values: readonly number[]): number | undefined =>
  values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined
