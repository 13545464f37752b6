import { type JobRequest, type Making, makeRequest } from './job-requests.ts'
import { KINDS, type Kind, RARE_KINDS, type TenantName } from './kinds.ts'

/** Jobs that wait for each other, as one batch. */
export type Pipeline = { tenant: TenantName; make(making: Making): JobRequest[] }

const named = (name: string): Kind => {
  const kind = KINDS.find((one) => one.name === name)
  if (!kind) throw new Error(`There is no kind ${name}`)
  return kind
}

/** Three parts at once, and then one after the other what needs all of them. */
const fanOutAndIn =
  (parts: Kind, then: readonly Kind[]) =>
  (making: Making): JobRequest[] => {
    const refs = [1, 2, 3].map((part) => `${parts.name}-${part}`)
    const first = refs.map((ref) => ({ ref, ...makeRequest(parts, making) }))
    const next = then.map((kind, n) => ({
      ref: `then-${n}`,
      ...makeRequest(kind, making),
      depends_on: (n === 0 ? refs : [`then-${n - 1}`]).map((ref) => `ref:${ref}`),
    }))
    return [...first, ...next]
  }

export const PIPELINES: readonly Pipeline[] = [
  {
    tenant: 'Northwind-Analytics',
    make: fanOutAndIn(named('clean-orders'), [named('train-forecast'), RARE_KINDS['publish-forecast']]),
  },
  {
    tenant: 'Zephyr-Media',
    make: fanOutAndIn(named('transcode-clip'), [
      RARE_KINDS['package-episode'],
      RARE_KINDS['notify-subscribers'],
    ]),
  },
]
