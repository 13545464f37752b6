import { setQuotas } from '../../db/queries/quotas.ts'
import { QUOTAS, WEIGHT, WEIGHT_FAULT } from '../../db/rules/quotas.ts'
import { UsageError } from '../command.ts'
import type { AdminCommand } from './command.ts'

export const quotasCommand: AdminCommand = {
  usage: 'quotas [NAME=NUMBER|NAME=none …]',
  about: 'show or set the quotas of organisations without ones of their own',
  run: async ({ name, more, run }) => {
    const changes = Object.fromEntries([name, ...more].flatMap((text) => (text ? [parseChange(text)] : [])))
    const [quotas] = await run(setQuotas(null, changes))
    if (!quotas) throw new Error('The default quotas are gone')
    const lines = QUOTAS.map((quota) => `${quota} = ${quotas[quota] ?? 'none'}`)
    const data = QUOTAS.map((quota) => [quota, quotas[quota] === null ? null : Number(quotas[quota])])
    const { weight } = quotas
    return {
      text: [...lines, `weight = ${weight}`].join('\n'),
      data: { ...Object.fromEntries(data), weight },
    }
  },
}

const parseChange = (text: string): [string, number | null] => {
  if (text.startsWith('weight=')) return ['weight', parseWeight(text.slice('weight='.length))]
  const [, quota = '', value] = /^([a-z_]+)=(none|\d{1,15})$/.exec(text) ?? []
  if (!QUOTAS.some((known) => known === quota) || value === undefined) {
    throw new UsageError(
      `"${text}" is no quota: ${QUOTAS.join(', ')}, each =NUMBER or =none, or weight=NUMBER`,
    )
  }
  return [quota, value === 'none' ? null : Number(value)]
}

const parseWeight = (text: string): number => {
  const weight = Number(text)
  if (weight >= WEIGHT.min && weight <= WEIGHT.max) return weight
  throw new UsageError(`The weight ${WEIGHT_FAULT}, not "${text}"`)
}
