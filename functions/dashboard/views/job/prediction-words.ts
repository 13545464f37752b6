import type { Job } from '../../api/answers.ts'
import { count, duration } from '../../ui/format.ts'

type Prediction = Job['prediction']

export const SOURCES: Record<Prediction['source'], string> = {
  lstm: 'the model',
  series: 'earlier runs of the same name',
  type: 'earlier runs of the type',
  default: 'nothing yet: no such job has run',
}

/** How near a prediction of the runtime was. Less than a tenth off counts as right. */
export const verdictOf = ({ p50_ms, p90_ms }: Prediction, actualMs: number): string => {
  const within = actualMs <= p90_ms ? 'within p90' : 'longer than p90, as one in ten does'
  return `Took ${ratioInWords(actualMs / Math.max(p50_ms, 0.1))}, ${within}.`
}

const ratioInWords = (ratio: number): string => {
  if (ratio > 0.9 && ratio < 1.1) return 'as long as predicted'
  if (ratio >= 10) return `${count(ratio)} × the prediction`
  if (ratio >= 0.1) return `${ratio.toFixed(1)} × the prediction`
  return ratio >= 0.01 ? `${ratio.toFixed(2)} × the prediction` : 'less than a hundredth of the prediction'
}

/** How long an attempt that runs will probably still take. */
export const outlookOf = ({ p50_ms, p90_ms }: Prediction, elapsedMs: number): string => {
  if (elapsedMs < p50_ms) return `Half of such attempts end within the next ${duration(p50_ms - elapsedMs)}.`
  if (elapsedMs < p90_ms)
    return `Longer than half of such attempts take. Nine of ten end within the next ${duration(p90_ms - elapsedMs)}.`
  return 'Longer than nine of ten such attempts take.'
}
