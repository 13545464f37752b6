import { answer } from './exchange-answer.ts'
import { claimPlain, claimSized, FULFILLED, findOldestLeft, leaseClaimed } from './exchange-claim.ts'
import { RECORDED, recordCompletions } from './exchange-completions.ts'
import { ALL_HELD, recordEnds } from './exchange-ends.ts'
import { learnWhere } from './exchange-learn.ts'
import { type ExchangeParameter, type ExchangeShape, PARAMETERS } from './exchange-shape.ts'

type Text = { name: string; text: string; parameters: ExchangeParameter[] }

const texts = new Map<string, Text>()

export const exchangeText = (shape: ExchangeShape): Text => {
  const { order, reranked, sized, restricted, traced, results, ends } = shape
  const parts = [
    'exchange-jobs',
    order,
    reranked && 'reranked',
    sized && 'sized',
    restricted && 'restricted',
    traced && 'traced',
    ends !== 'none' && ends,
    results && 'results',
  ]
  const name = parts.filter(Boolean).join('-')
  const known = texts.get(name)
  if (known) return known
  const parameters: ExchangeParameter[] = []
  const written = compose(shape).replaceAll(/:(\w+)!/g, (_, parameter: ExchangeParameter) => {
    if (!parameters.includes(parameter)) parameters.push(parameter)
    return `$${parameters.indexOf(parameter) + 1}::${PARAMETERS[parameter]}`
  })
  const made = { name, text: written, parameters }
  texts.set(name, made)
  return made
}

const compose = (shape: ExchangeShape): string => {
  const parts = [
    ...record(shape),
    shape.sized ? claimSized(shape) : claimPlain(shape),
    leaseClaimed(shape),
    ...(shape.reranked ? [findOldestLeft(shape)] : []),
    ...(shape.sized ? [FULFILLED] : []),
  ]
  return `
    with${parts.join(',')}${answer(shape)}`
}

const record = (shape: ExchangeShape): string[] => {
  switch (shape.ends) {
    case 'none':
      return []
    case 'completed':
      return [recordCompletions(shape), learnWhere(RECORDED, false)]
    case 'checked':
      return [recordEnds(shape), learnWhere(ALL_HELD, true)]
  }
}
