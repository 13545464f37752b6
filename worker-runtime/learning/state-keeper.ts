import type { Predictor } from '../../functions/prediction/lstm/predictor.ts'
import type { SeriesMemory } from '../../functions/prediction/model/series-memory.ts'
import type { Lesson } from './training-memory.ts'

/**
 * Carries the network's state of each series on. Executions are run through it together: first the oldest of each series
 * that has any, then the next of each, so that a step is one batch.
 */
export const createStateKeeper = (predictor: () => Predictor) => {
  let waiting = new Map<SeriesMemory, Lesson[]>()

  const settle = (): void => {
    while (waiting.size > 0) {
      const round = [...waiting]
      step(round.map(([memory, lessons]) => ({ memory, lesson: lessons.shift() as Lesson })))
      waiting = new Map(round.filter(([, lessons]) => lessons.length > 0))
    }
  }

  const step = (round: { memory: SeriesMemory; lesson: Lesson }[]): void => {
    const inputs = round[0]?.lesson.x.length ?? 0
    const width = predictor().width
    const x = new Float32Array(round.length * inputs)
    const states = new Float32Array(round.length * width)
    for (const [n, { memory, lesson }] of round.entries()) {
      x.set(lesson.x, n * inputs)
      states.set(memory.state, n * width)
      lesson.state = memory.state
    }
    const { state } = predictor().step(x, states)
    for (const [n, { memory }] of round.entries()) memory.state = state.slice(n * width, (n + 1) * width)
  }

  return {
    add: (memory: SeriesMemory, lesson: Lesson): void => {
      const lessons = waiting.get(memory)
      if (lessons) lessons.push(lesson)
      else waiting.set(memory, [lesson])
    },
    settle,
  }
}
