/** One part of a backtest, in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads'
import { useWasmBackend } from '../learning/wasm-backend.ts'
import { measureAccuracy } from './accuracy.ts'
import { type ArrivalOptions, compressArrivals } from './arrivals.ts'
import { readHistory } from './history.ts'
import { createPolicy, type PolicyName } from './policies.ts'
import { scoreWaits } from './score.ts'
import { simulate } from './simulation.ts'

export type TaskOptions = ArrivalOptions & {
  file: string
  /** Of each worker. */
  slots: number
  skip: number
  floorMs: number
  seed: number
}

export type Task = TaskOptions & { part: 'accuracy' | PolicyName }

export type TaskMessage = { kind: 'progress'; done: number } | { kind: 'result'; result: unknown }

const tell = (message: TaskMessage): void => parentPort?.postMessage(message)

const run = async (task: Task): Promise<unknown> => {
  await useWasmBackend()
  const jobs = await readHistory(task.file)
  const onProgress = (done: number): void => tell({ kind: 'progress', done: done / jobs.length })
  if (task.part === 'accuracy') return measureAccuracy({ ...task, jobs, onProgress })
  const { workers, slots } = task
  const submitS = compressArrivals(jobs, { ...task, workers: workers * slots })
  const policy = createPolicy(task.part, task)
  const waitS = simulate({ jobs, submitS, workers, slots, policy, onProgress })
  return scoreWaits(
    waitS,
    Float64Array.from(jobs, ({ runtimeMs }) => runtimeMs / 1000),
  )
}

if (parentPort) tell({ kind: 'result', result: await run(workerData as Task) })
