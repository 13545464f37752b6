import { createPredictor } from '../../../functions/prediction/lstm/predictor.ts'
import { createRandom } from '../../../functions/prediction/lstm/random.ts'
import { createTrainer } from '../../../functions/prediction/lstm/trainer.ts'
import { createWeights } from '../../../functions/prediction/lstm/weights.ts'
import { useWasmBackend } from '../../../worker-runtime/learning/wasm-backend.ts'

export const TRAINING = { steps: 16, size: 64, inputs: 64, hidden: 32 }

const random = createRandom(1)
const numbers = (count: number) => new Float32Array(count).map(() => 2 * random() - 1)

/** Milliseconds of CPU of one training step, once for each round. */
export const timeTraining = async (steps: number, rounds: number): Promise<number[]> => {
  await useWasmBackend()
  const { steps: T, size: B, inputs: I, hidden: H } = TRAINING
  const trainer = createTrainer({ weights: createWeights({ inputs: I, hidden: H, heads: 2 }, 1) })
  const batch = {
    steps: T,
    size: B,
    inputs: numbers(T * B * I),
    targets: numbers(T * B),
    weights: new Float32Array(T * B).fill(1),
    initialState: numbers(B * 4 * H),
  }
  return time(rounds, steps, () => trainer.step(batch))
}

/** Milliseconds of CPU of one step of `rows` rows, once for each round. */
export const timeBatch = async (rows: number, steps: number, rounds: number): Promise<number[]> => {
  await useWasmBackend()
  const { inputs: I, hidden: H } = TRAINING
  const predictor = createPredictor(createWeights({ inputs: I, hidden: H, heads: 2 }, 1))
  const x = numbers(rows * I)
  let state = numbers(rows * 4 * H)
  const times = time(rounds, steps, () => {
    state = predictor.step(x, state).state
  })
  predictor.dispose()
  return times
}

/** CPU and not the clock: others may be using this machine. One round more than asked for: the first is the compiler's. */
const time = (rounds: number, steps: number, work: () => void): number[] =>
  Array.from({ length: rounds + 1 }, () => {
    const before = process.cpuUsage()
    for (let n = 0; n < steps; n++) work()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / steps
  }).slice(1)
