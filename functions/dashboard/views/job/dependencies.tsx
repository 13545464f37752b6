import { useSignal } from '@preact/signals'
import type { Job, JobGraph } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { ChartFrame } from '../../charts/chart-frame.tsx'
import { useLive } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { StatusBadge } from '../../ui/badges.tsx'
import { count, duration } from '../../ui/format.ts'
import { GraphDrawing } from './graph-drawing.tsx'

type GraphNode = JobGraph['nodes'][number]

/** The jobs that this one hangs together with, as they are now. A job that stands alone has no graph. */
export const Dependencies = ({ job }: { job: Job }) => {
  const graph = useResource((signal) => get<JobGraph>(`/jobs/${job.id}/graph`, {}, signal))
  const states = useSignal<Partial<Record<string, Job['status']>>>({})
  const ids = new Set(graph.data.value?.nodes.map(({ id }) => id))
  useLive({
    onEvents: (events) => {
      const own = events.filter((event) => ids.has(event.job.id))
      if (own.length === 0) return
      states.value = { ...states.value, ...Object.fromEntries(own.map(({ job }) => [job.id, job.status])) }
    },
    onResync: () => {
      states.value = {}
      graph.reload()
    },
  })
  const found = graph.data.value
  if (!found || found.nodes.length < 2) return null
  const nodes = found.nodes.map((node) => ({
    ...node,
    status: node.id === job.id ? job.status : (states.value[node.id] ?? node.status),
  }))
  return (
    <ChartFrame
      title="Dependencies"
      about={aboutOf(found)}
      wide
      rows={nodes}
      keyOf={({ id }) => id}
      columns={columnsFor(nodes, found.edges)}
    >
      <GraphDrawing nodes={nodes} edges={found.edges} current={job.id} />
    </ChartFrame>
  )
}

const aboutOf = ({ nodes, truncated }: JobGraph): string => {
  const many = truncated ? `The nearest ${count(nodes.length)} of the` : count(nodes.length)
  return `${many} jobs that hang together. Each waits for those to its left; a dashed line is still waited for.`
}

const columnsFor = (nodes: readonly GraphNode[], edges: JobGraph['edges']) => {
  const names = new Map(nodes.map(({ id, name }) => [id, name]))
  const parents = Map.groupBy(edges, ({ to }) => to)
  const waitsFor = ({ id }: GraphNode): string =>
    (parents.get(id) ?? []).map(({ from }) => names.get(from) ?? '').join(', ') || 'nothing'
  return [
    { title: 'Job', cell: ({ id, name }: GraphNode) => <a href={linkTo(`/jobs/${id}`)}>{name}</a> },
    { title: 'Status', cell: ({ status }: GraphNode) => <StatusBadge status={status} /> },
    { title: 'Waits for', cell: waitsFor },
    { title: 'Type', minor: true, cell: ({ type }: GraphNode) => type },
    { title: 'Predicted', numeric: true, cell: ({ prediction }: GraphNode) => duration(prediction.p50_ms) },
  ]
}
