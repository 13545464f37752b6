import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Task, TaskMessage } from './task.ts'

/** Runs tasks in threads, as many at a time as there are cores. Answers their results in the order of the tasks. */
export const runTasks = async (
  tasks: readonly Task[],
  onProgress: (done: readonly number[]) => void,
): Promise<unknown[]> => {
  const results: unknown[] = []
  const done = tasks.map(() => 0)
  const waiting = [...tasks.entries()]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [n, task] = next
      results[n] = await runTask(task, (part) => {
        done[n] = part
        onProgress(done)
      })
      done[n] = 1
      onProgress(done)
    }
  }
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), tasks.length) }, lane))
  return results
}

const runTask = (task: Task, onProgress: (done: number) => void): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./task.ts', import.meta.url), { workerData: task })
    thread.on('message', (message: TaskMessage) => {
      if (message.kind === 'progress') onProgress(message.done)
      else resolve(message.result)
    })
    thread.on('error', reject)
    thread.on('exit', (code) => reject(new Error(`The thread of ${task.part} ended with ${code}`)))
  })
