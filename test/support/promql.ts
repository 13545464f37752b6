import { parser } from '@prometheus-io/lezer-promql'

export type Selected = {
  metric: string
  /** The function that it is the argument of, directly or through an aggregation; undefined: of none. */
  within: string | undefined
}

/** What an expression reads. Throws at what is not PromQL. */
export const selectionsOf = (expression: string): Selected[] => {
  const selected: Selected[] = []
  const functions: (string | undefined)[] = []
  parser.parse(expression).iterate({
    enter: ({ name, type, from, to, node }) => {
      const text = expression.slice(from, to)
      if (type.isError) throw new Error(`Not PromQL at ${from}: ${expression}`)
      if (name === 'FunctionCall') {
        const called = node.getChild('FunctionIdentifier')
        functions.push(called ? expression.slice(called.from, called.to) : undefined)
      }
      if (name === 'VectorSelector') {
        const metric = node.getChild('Identifier')
        if (!metric) throw new Error(`A selector without the name of a metric: ${text}`)
        selected.push({ metric: expression.slice(metric.from, metric.to), within: functions.at(-1) })
      }
    },
    leave: ({ name }) => {
      if (name === 'FunctionCall') functions.pop()
    },
  })
  return selected
}

/** Labels that an expression groups by: those that its result may have. */
export const groupingOf = (expression: string): Set<string> => {
  const labels = new Set<string>()
  parser.parse(expression).iterate({
    enter: ({ name, from, to, node }) => {
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels')
        labels.add(expression.slice(from, to))
    },
  })
  return labels
}

/** Of a histogram there are three series; what is documented is its name. */
export const familyOf = (metric: string): string => metric.replace(/_(bucket|sum|count)$/, '')
