/** A request that waits for its turn to send what several have to send, or for another request to do so (submitter.ts). */
export type Waiting<Answer> = {
  sent: boolean
  settled: boolean
  answer: PromiseWithResolvers<Answer>
  /** Called when it is its turn to send, or when it is settled. */
  wake: () => void
}

export const newWaiting = <Answer>(): Waiting<Answer> => {
  const answer = Promise.withResolvers<Answer>()
  // A rejection that nobody awaits any more must not be reported as unhandled.
  answer.promise.catch(() => {})
  return { sent: false, settled: false, answer, wake: () => {} }
}

export const settle = <Answer>(
  one: Waiting<Answer>,
  how: (answer: PromiseWithResolvers<Answer>) => void,
): void => {
  one.settled = true
  how(one.answer)
  one.wake()
}

/** Waits until it is its turn to send, it is settled, or the time is up. */
export const untilWoken = async (one: { wake: () => void }, ms: number): Promise<void> => {
  const woken = Promise.withResolvers<void>()
  one.wake = woken.resolve
  const timer = setTimeout(woken.resolve, ms)
  await woken.promise
  clearTimeout(timer)
}
