import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Replay } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { type Faults, faultsFor } from '../../ui/faults.ts'
import { type RuleTexts, rulesOf } from './rules.ts'

export type Trial = {
  /** What the delivery would become; undefined while it is not known, or the rules cannot be read. */
  result: Replay | undefined
  faults: Faults
}

const PAUSE_MS = 400

/** What a delivery would become by a draft of its rules, once nobody has typed for a moment. Nothing is stored. */
export const useTrial = (deliveryId: string, texts: RuleTexts): ReadonlySignal<Trial> => {
  const trial = useSignal<Trial>({ result: undefined, faults: { at: {}, rest: undefined } })
  useEffect(() => {
    let current = true
    const look = async (): Promise<Trial> => {
      try {
        const draft = { ...rulesOf(texts), dry_run: true }
        const result = await post<Replay>(`/webhooks/deliveries/${deliveryId}/replay`, draft)
        return { result, faults: { at: {}, rest: undefined } }
      } catch (error) {
        return { result: undefined, faults: faultsFor(error, ['/filter', '/template']) }
      }
    }
    const timer = setTimeout(async () => {
      const found = await look()
      if (current) trial.value = found
    }, PAUSE_MS)
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [deliveryId, texts.filter, texts.template])
  return trial
}
