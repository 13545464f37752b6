import { parseConfig } from '../../worker-runtime/config.ts'
import { createLogger } from '../../worker-runtime/logger.ts'
import { createWorker } from '../../worker-runtime/worker.ts'
import { handle } from './worker.ts'

/**
 * A worker pod whose jobs of type `kill` end the process the moment they start, those of type `call` wait for a server, and
 * those of type `test` are done at once.
 */
const config = parseConfig(process.env)
const worker = createWorker({
  config: { ...config, DATABASE_URL: config.DATABASE_URL ?? '' },
  handlers: [
    handle(() => process.exit(3), 'kill'),
    handle(async ({ url }) => (await fetch(String(url))).text(), 'call'),
    handle(() => 'done'),
  ],
  logger: createLogger({ level: config.SMARTQUEUE_LOG_LEVEL }),
})
process.on('SIGTERM', async () => {
  await worker.stop()
  process.exit(0)
})
process.on('disconnect', () => process.exit(1))
await worker.start()
process.send?.({ kind: 'ready', workerId: worker.id, types: worker.types })
