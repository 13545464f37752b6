/** What the model card says in numbers, in words. */
import type { ModelCard, ModelVersion } from '../../api/answers.ts'
import { count, DASH, percent } from '../../ui/format.ts'

/** Mean absolute errors of ln(runtime). */
export const errorText = (error: number | null | undefined): string =>
  error === null || error === undefined ? DASH : `${error.toFixed(2)} ln`

/** An error of 0.69 in ln is to be off by a factor of two. */
export const factorText = (error: number): string => `a factor of ${Math.exp(error).toFixed(1)}`

/** What is predicted, and those who predict. */
export const EXPERT_NAMES: Record<string, string> = {
  smartqueue: 'The mixture, as shipped',
  series: 'Running mean of a series',
  'last-two': 'Last two runs',
  median: 'Median of 48 runs',
  kernel: 'Runs of like size',
  alike: 'Runs that look alike',
  organisation: 'Newest of the organisation',
  'type-median': 'Median of the type',
  lstm: 'Network (LSTM)',
}

export const SOURCE_NAMES: Record<string, string> = {
  lstm: 'Network (LSTM)',
  series: 'Runs of the series',
  type: 'Jobs of the type',
  default: 'Nothing: a first guess',
}

export const FAULT_NAMES: Record<string, string> = {
  timeout: 'Inputs did not come within 250 ms',
  'inputs-error': 'Inputs could not be read',
  'corrupt-weights': 'Weights could not be read',
  'model-error': 'The network failed',
  'experts-error': 'The experts failed',
  refused: 'The database rejected the prediction',
}

export const numberAt = (record: Record<string, unknown>, key: string): number | null => {
  const value = record[key]
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** What a version and another one were worth on executions that neither was trained on. */
export type Judgement = {
  kind: string
  /** Mean errors: its own, and that of the version that it was compared with. */
  own: number
  rival: number
  against: number
  executions: number
  z: number
}

/** Undefined: it was never judged. */
export const judgementOf = (evaluation: Record<string, unknown>): Judgement | undefined => {
  const { kind } = evaluation
  const [before, after] = [numberAt(evaluation, 'before'), numberAt(evaluation, 'after')]
  if (typeof kind !== 'string' || before === null || after === null) return undefined
  // Of a champion that fell, `after` is the one before it.
  const [own, rival] = kind === 'rolled_back' ? [before, after] : [after, before]
  return {
    ...{ kind, own, rival },
    against: numberAt(evaluation, 'against') ?? 0,
    executions: numberAt(evaluation, 'executions') ?? 0,
    z: numberAt(evaluation, 'z') ?? 0,
  }
}

/** As it was when it came: what happened to it later is left out. */
export const firstJudgementOf = ({ evaluation }: ModelVersion): Judgement | undefined => {
  const { promotion } = evaluation
  return judgementOf(
    typeof promotion === 'object' && promotion ? (promotion as typeof evaluation) : evaluation,
  )
}

/** Why a version is what it is. */
export const decisionOf = ({ evaluation, parent }: ModelVersion): string => {
  if (evaluation.unreadable === true) return 'Could not be read: a former version took its place.'
  const judgement = judgementOf(evaluation)
  if (!judgement) return parent === null ? 'The first: there was nothing to beat.' : 'Not judged.'
  const { kind, own, rival, against, executions } = judgement
  const on = `on ${count(executions)} executions`
  if (kind === 'rolled_back') {
    return `Rolled back: version ${against} did better beyond doubt, ${on}.`
  }
  const difference = `${differenceOf(own, rival)} than version ${against}`
  if (kind === 'promoted') return `Promoted: ${difference} ${on}, beyond doubt.`
  if (own < rival) return `Rejected: ${difference} ${on}, but that may be chance.`
  return `Rejected: ${difference} ${on}.`
}

/** 12 % less error */
export const differenceOf = (own: number, rival: number): string => {
  const share = rival > 0 ? 1 - own / rival : 0
  if (Math.abs(share) < 0.0005) return 'no less error'
  return share > 0 ? `${percent(share)} less error` : `${percent(-share)} more error`
}

/** Newest last, for charts. */
export const pointsOf = (card: ModelCard): ModelCard['accuracy_over_time'] =>
  card.accuracy_over_time.toReversed()
