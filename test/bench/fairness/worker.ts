import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { parseConfig } from '../../../worker-runtime/config.ts'
import { defineJob } from '../../../worker-runtime/handler-api.ts'
import { createLogger } from '../../../worker-runtime/logger.ts'
import { createWorker } from '../../../worker-runtime/worker.ts'
import { urlOf } from '../queue/smartqueue.ts'
import { runWorker } from '../queue/worker-side.ts'
import { SLEEP } from './real-workers.ts'

/** A worker whose jobs take as long as their payload says. */
runWorker(async (url) => {
  const config = parseConfig({
    SMARTQUEUE_WORKER_SLOTS: process.env.BENCH_SLOTS,
    SMARTQUEUE_WORKER_MEMORY_MB: '1000000',
    SMARTQUEUE_LOG_LEVEL: 'error',
  })
  const sleep = defineJob({
    type: SLEEP,
    schema: z.object({ ms: z.number() }),
    run: async ({ ms }) => {
      await delay(ms)
    },
  })
  const worker = createWorker({
    config: { ...config, DATABASE_URL: urlOf(url, 'workers') },
    handlers: [sleep],
    logger: createLogger({ level: 'error' }),
  })
  await worker.start()
})
