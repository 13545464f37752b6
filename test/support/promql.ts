import { parser } from '@prometheus-io/lezer-promql'

type Node = ReturnType<typeof parser.parse>['topNode']

export type Selected = {
  metric: string
  /** The function that it is the argument of, directly or within an aggregation; undefined: of none. */
  within: string | undefined
  matchers: { label: string; operator: string; value: string }[]
  /** Labels that the aggregations around it go by. */
  groupedBy: string[]
}

/** What an expression reads. Throws at what is not PromQL. */
export const selectionsOf = (expression: string): Selected[] => {
  const textOf = (node: Node): string => expression.slice(node.from, node.to)
  const selected: Selected[] = []
  parser.parse(expression).iterate({
    enter: ({ name, type, from, node }) => {
      if (type.isError) throw new Error(`Not PromQL at ${from}: ${expression}`)
      if (name !== 'VectorSelector') return
      const metric = node.getChild('Identifier')
      if (!metric) throw new Error(`A selector without the name of a metric: ${textOf(node)}`)
      const around = ancestorsOf(node)
      const called = around.find((one) => one.name === 'FunctionCall')?.getChild('FunctionIdentifier')
      selected.push({
        metric: textOf(metric),
        within: called ? textOf(called) : undefined,
        matchers: childrenOf(node.getChild('LabelMatchers'), 'UnquotedLabelMatcher').map((matcher) => {
          const [label = '', operator = '', value = ''] = childrenOf(matcher).map(textOf)
          return { label, operator, value: value.slice(1, -1) }
        }),
        groupedBy: around.flatMap((one) => groupingsOf(one).map(textOf)),
      })
    },
  })
  return selected
}

/** Labels that an expression goes by: those that its result may have. What is recorded says so in its name, before the colon. */
export const groupingOf = (expression: string): Set<string> =>
  new Set(
    selectionsOf(expression).flatMap(({ metric, groupedBy }) => [
      ...groupedBy,
      ...(/^(\w+):/.exec(metric)?.slice(1) ?? []),
    ]),
  )

const ancestorsOf = (node: Node): Node[] => (node.parent ? [node.parent, ...ancestorsOf(node.parent)] : [])

const childrenOf = (node: Node | null, type?: string): Node[] => {
  const children: Node[] = []
  for (let child = node?.firstChild; child; child = child.nextSibling)
    if (type === undefined || child.name === type) children.push(child)
  return children
}

const groupingsOf = (node: Node): Node[] =>
  node.name === 'AggregateExpr'
    ? childrenOf(node.getChild('AggregateModifier')?.getChild('GroupingLabels') ?? null, 'LabelName')
    : []
