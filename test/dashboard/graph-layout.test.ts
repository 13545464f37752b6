import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Edge } from '../../functions/dashboard/views/job/graph-layers.ts'
import { type Layout, layOut } from '../../functions/dashboard/views/job/graph-layout.ts'

const SIZE = { width: 100, height: 40, columnGap: 50, rowGap: 10 }

const draw = (text: string): { layout: Layout; edges: Edge[] } => {
  const edges = text.split(' ').map((edge) => {
    const [from = '', to = ''] = edge.split('>')
    return { from, to }
  })
  const nodes = [...new Set(edges.flatMap(({ from, to }) => [from, to]))]
  return { layout: layOut(nodes, edges, SIZE), edges }
}

const at = (layout: Layout, key: string) => {
  const point = layout.nodes.get(key)
  assert.ok(point, `${key} has no place`)
  return point
}

const assertSound = ({ layout, edges }: { layout: Layout; edges: Edge[] }): void => {
  const places = [...layout.nodes.values()]
  for (const [n, a] of places.entries()) {
    assert.ok(a.x >= 0 && a.y >= -1e-6, 'outside of the picture')
    assert.ok(a.x + SIZE.width <= layout.width && a.y + SIZE.height <= layout.height + 1e-6)
    for (const b of places.slice(n + 1)) {
      const apart =
        Math.abs(a.x - b.x) >= SIZE.width || Math.abs(a.y - b.y) >= SIZE.height + SIZE.rowGap - 1e-6
      assert.ok(apart, `${JSON.stringify(a)} and ${JSON.stringify(b)} overlap`)
    }
  }
  edges.forEach(({ from, to }, n) => {
    const line = layout.edges[n] ?? []
    const [start, end] = [line[0], line.at(-1)]
    assert.deepEqual(start, { x: at(layout, from).x + SIZE.width, y: at(layout, from).y + SIZE.height / 2 })
    assert.deepEqual(end, { x: at(layout, to).x, y: at(layout, to).y + SIZE.height / 2 })
    line.slice(1).forEach((point, i) => {
      assert.ok(point.x > (line[i]?.x ?? 0), 'an edge goes back')
    })
  })
}

test('a job alone stands at the corner', () => {
  const layout = layOut(['a'], [], SIZE)
  assert.deepEqual(layout.nodes.get('a'), { x: 0, y: 0 })
  assert.deepEqual([layout.width, layout.height], [100, 40])
})

test('a chain is a straight line from left to right', () => {
  const drawn = draw('a>b b>c c>d')
  assertSound(drawn)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => at(drawn.layout, key)),
    [0, 150, 300, 450].map((x) => ({ x, y: 0 })),
  )
})

test('both ends of a diamond stand in the middle of what is between them', () => {
  const drawn = draw('a>b a>c b>d c>d')
  assertSound(drawn)
  const { layout } = drawn
  assert.equal(at(layout, 'b').x, at(layout, 'c').x)
  assert.equal(at(layout, 'a').y, (at(layout, 'b').y + at(layout, 'c').y) / 2)
  assert.equal(at(layout, 'd').y, at(layout, 'a').y)
})

test('a wide fan-out stands in one column, its parent in the middle', () => {
  const drawn = draw(Array.from({ length: 60 }, (_, n) => `root>leaf${n}`).join(' '))
  assertSound(drawn)
  const { layout } = drawn
  assert.equal(layout.width, 250)
  assert.ok(Math.abs(at(layout, 'root').y + SIZE.height / 2 - layout.height / 2) < 1)
})

test('children are ordered as their parents are: edges do not cross without need', () => {
  const drawn = draw('r>a r>b r>c c>z a>x b>y')
  assertSound(drawn)
  const rank = (keys: string[]): string[] =>
    keys.toSorted((one, other) => at(drawn.layout, one).y - at(drawn.layout, other).y)
  const pair: Record<string, string> = { a: 'x', b: 'y', c: 'z' }
  assert.deepEqual(
    rank(['a', 'b', 'c']).map((key) => pair[key]),
    rank(['x', 'y', 'z']),
  )
})

test('an edge over several layers does not run through the jobs between', () => {
  const drawn = draw('a>b b>c c>d a>d')
  assertSound(drawn)
  const long = drawn.layout.edges[3] ?? []
  for (const key of ['b', 'c']) {
    const { x, y } = at(drawn.layout, key)
    const passing = long.filter((point) => point.x >= x && point.x <= x + SIZE.width)
    assert.equal(passing.length, 2)
    for (const point of passing) assert.ok(point.y < y || point.y > y + SIZE.height)
  }
})

test('what waits for nothing stands right before what waits for it', () => {
  const drawn = draw('a>b b>c late>c')
  assertSound(drawn)
  assert.equal(at(drawn.layout, 'late').x, at(drawn.layout, 'b').x)
})

test('two hundred jobs with many edges are laid out in time', () => {
  const edges = Array.from({ length: 600 }, (_, n) => {
    const to = 1 + ((n * 7919) % 199)
    return `n${(n * 104729) % to}>n${to}`
  })
  const began = performance.now()
  assertSound(draw([...new Set(edges)].join(' ')))
  assert.ok(performance.now() - began < 3_000)
})
