/** What a job of a batch says about its place in the graph: its own name in the batch, and what it waits for. */
export type GraphJob = { readonly ref?: string | undefined; readonly depends_on: readonly string[] }

/** Where a batch is wrong: position of the job, and of the entry in its `depends_on`. */
export type GraphFault =
  | { kind: 'duplicate-ref'; job: number; first: number }
  | { kind: 'unknown-ref'; job: number; entry: number }
  | { kind: 'cycle'; edges: { job: number; entry: number }[] }

const PREFIX = 'ref:'

/** The part after `ref:`, or undefined if the entry is the id of an existing job. */
export const refOf = (entry: string): string | undefined =>
  entry.startsWith(PREFIX) ? entry.slice(PREFIX.length) : undefined

/**
 * Checks that the jobs of a batch form a graph without cycles. Only edges inside the batch matter: a job that exists
 * already cannot depend on one that does not yet.
 */
export const findGraphFaults = (jobs: readonly GraphJob[]): GraphFault[] => {
  const positions = new Map<string, number>()
  const faults: GraphFault[] = []
  jobs.forEach(({ ref }, job) => {
    if (ref === undefined) return
    const first = positions.get(ref)
    if (first === undefined) positions.set(ref, job)
    else faults.push({ kind: 'duplicate-ref', job, first })
  })
  const edges = jobs.map(({ depends_on }, job) =>
    depends_on.flatMap((text, entry) => {
      const ref = refOf(text)
      if (ref === undefined) return []
      const parent = positions.get(ref)
      if (parent === undefined) faults.push({ kind: 'unknown-ref', job, entry })
      return parent === undefined ? [] : [{ job, entry, parent }]
    }),
  )
  const cycle = faults.length === 0 ? findCycle(edges) : undefined
  return cycle ? [{ kind: 'cycle', edges: cycle.map(({ job, entry }) => ({ job, entry })) }] : faults
}

type Edge = { job: number; entry: number; parent: number }

/**
 * Depth first with a stack of its own: a chain of a thousand jobs is no reason to overflow the call stack. A job on
 * the path from the start is `open`; an edge back to one closes a cycle.
 */
const findCycle = (edges: readonly (readonly Edge[])[]): Edge[] | undefined => {
  const state: ('open' | 'done' | undefined)[] = []
  for (let start = 0; start < edges.length; start++) {
    if (state[start]) continue
    const path: Edge[] = []
    const stack = [{ job: start, next: 0 }]
    state[start] = 'open'
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const edge = edges[top.job]?.[top.next++]
      if (!edge) {
        state[top.job] = 'done'
        stack.pop()
        path.pop()
      } else if (state[edge.parent] === 'open') {
        const from = path.findIndex(({ job }) => job === edge.parent)
        return [...(from === -1 ? [] : path.slice(from)), edge]
      } else if (!state[edge.parent]) {
        state[edge.parent] = 'open'
        path.push(edge)
        stack.push({ job: edge.parent, next: 0 })
      }
    }
  }
  return undefined
}
