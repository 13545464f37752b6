import { getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'
import { z } from 'zod'
import type { JobContext } from '../../../worker-runtime/handler-api.ts'
import { judgeResult } from '../../../worker-runtime/judge-result.ts'
import { createThreadPool } from '../../../worker-runtime/threads/pool.ts'

/** As a handler: how large its heap may become. As a program: prints that. */
export const run = async () => getHeapStatistics().heap_size_limit

if (isMainThread) {
  const pool = createThreadPool({ allow: [], connections: {} })
  const handler = pool.toJobHandler({ type: 'test', schema: z.unknown(), module: new URL(import.meta.url) })
  const result = await handler.run({}, { signal: new AbortController().signal } as JobContext)
  const outcome = judgeResult(result)
  console.log(outcome.kind === 'done' && outcome.resultJson)
  await pool.close()
}
