import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import type { JobGraph } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { layOut, type Point } from './graph-layout.ts'

const SIZE = { width: 160, height: 56, columnGap: 48, rowGap: 14 }

/** Edges are drawn; jobs are links that stand on the drawing, so that text is cut off and focus shown as everywhere. */
export const GraphDrawing = (props: {
  nodes: JobGraph['nodes']
  edges: JobGraph['edges']
  current: string
}) => {
  const { nodes, edges, current } = props
  const shape = JSON.stringify([nodes.map(({ id }) => id), edges])
  const layout = useMemo(
    () =>
      layOut(
        nodes.map(({ id }) => id),
        edges,
        SIZE,
      ),
    [shape],
  )
  const frame = useRef<HTMLElement>(null)
  useEffect(() => centre(frame.current, layout.nodes.get(current)), [layout, current])
  const states = new Map(nodes.map(({ id, status }) => [id, status]))
  return (
    <section
      class="graph-frame"
      ref={frame}
      aria-label="Graph of dependencies"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <div class="graph" style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
        <Edges
          width={layout.width}
          height={layout.height}
          lines={edges.map(({ from, to }, n) => ({
            points: layout.edges[n] ?? [],
            isOpen: states.get(from) !== 'completed',
            isOwn: from === current || to === current,
          }))}
        />
        {nodes.map(({ id, name, type, status }) => {
          const { x = 0, y = 0 } = layout.nodes.get(id) ?? {}
          return (
            <a
              key={id}
              href={linkTo(`/jobs/${id}`)}
              class="graph-node"
              aria-current={id === current ? 'true' : undefined}
              title={`${name} (${type})`}
              style={{ left: `${x}px`, top: `${y}px`, width: `${SIZE.width}px`, height: `${SIZE.height}px` }}
            >
              <span class="graph-name">{name}</span>
              <StatusBadge status={status} />
            </a>
          )
        })}
      </div>
    </section>
  )
}

type Line = { points: Point[]; isOpen: boolean; isOwn: boolean }

const Edges = ({ width, height, lines }: { width: number; height: number; lines: Line[] }) => {
  const arrow = useId()
  return (
    <svg width={width} height={height} aria-hidden="true">
      <defs>
        {['', 'own'].map((kind) => (
          <marker
            key={kind}
            id={arrow + kind}
            viewBox="0 0 8 8"
            refX="8"
            refY="4"
            markerUnits="userSpaceOnUse"
            markerWidth="9"
            markerHeight="9"
            orient="auto"
          >
            <path class={`graph-arrow ${kind}`} d="M0 0 8 4 0 8z" />
          </marker>
        ))}
      </defs>
      {lines.map(({ points, isOpen, isOwn }, n) => (
        <path
          key={n}
          class={`graph-edge${isOpen ? ' open' : ''}${isOwn ? ' own' : ''}`}
          d={pathOf(points)}
          marker-end={`url(#${arrow}${isOwn ? 'own' : ''})`}
        />
      ))}
    </svg>
  )
}

/** Turns in the gaps between layers, and goes straight through them. */
const pathOf = ([first, ...rest]: readonly Point[]): string => {
  if (!first) return ''
  let last = first
  let path = `M${first.x} ${first.y}`
  rest.forEach((point, n) => {
    const middle = (last.x + point.x) / 2
    path += n % 2 === 0 ? `C${middle} ${last.y} ${middle} ${point.y} ${point.x} ${point.y}` : `H${point.x}`
    last = point
  })
  return path
}

const centre = (frame: HTMLElement | null, node: Point | undefined): void => {
  if (!frame || !node) return
  frame.scrollLeft = node.x + SIZE.width / 2 - frame.clientWidth / 2
  frame.scrollTop = node.y + SIZE.height / 2 - frame.clientHeight / 2
}
