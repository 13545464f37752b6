import { answer, recordEvents } from './exchange-answer.ts'
import { claimPlain, claimSized, FULFILLED, leaseClaimed } from './exchange-claim.ts'
import { learn, recordEnds, recordFailures, reviseLeases } from './exchange-record.ts'
import { type ExchangeParameter, type ExchangeShape, PARAMETERS } from './exchange-shape.ts'

type Text = { name: string; text: string; parameters: ExchangeParameter[] }

const texts = new Map<string, Text>()

export const exchangeText = (shape: ExchangeShape): Text => {
  const { order, sized, results, revises } = shape
  const name = ['exchange-jobs', order, sized && 'sized', results && 'results', revises && 'revises']
    .filter(Boolean)
    .join('-')
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

const compose = (shape: ExchangeShape): string =>
  [
    `
    with${recordEnds(shape)},`,
    shape.revises ? `${recordFailures},${reviseLeases},` : '',
    `${learn},${shape.sized ? claimSized(shape) : claimPlain(shape)},${leaseClaimed(shape)},${shape.sized ? FULFILLED : ''}${recordEvents(shape)}`,
    answer(shape),
  ].join('')
