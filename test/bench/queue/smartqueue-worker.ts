import { z } from 'zod'
import { parseConfig } from '../../../worker-runtime/config.ts'
import { defineJob } from '../../../worker-runtime/handler-api.ts'
import { createLogger } from '../../../worker-runtime/logger.ts'
import { createWorker } from '../../../worker-runtime/worker.ts'
import { JOB_TYPE } from './contender.ts'
import { urlOf } from './smartqueue.ts'
import { runWorker } from './worker-side.ts'

/** Jobs that do nothing are over before the next claim: enough of them at a time keep both statements full. */
const SLOTS = '300'

runWorker(async (url, handle) => {
  const config = parseConfig({ SMARTQUEUE_WORKER_SLOTS: SLOTS, SMARTQUEUE_LOG_LEVEL: 'error' })
  const noop = defineJob({ type: JOB_TYPE, schema: z.object({}), run: async () => handle() })
  const worker = createWorker({
    config: { ...config, DATABASE_URL: urlOf(url, 'workers') },
    handlers: [noop],
    logger: createLogger({ level: 'error' }),
  })
  await worker.start()
})
