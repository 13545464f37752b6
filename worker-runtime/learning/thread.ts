import { parentPort, workerData } from 'node:worker_threads'
import { createDatabase, RELAXED_COMMIT } from '../database.ts'
import { describeError } from '../describe-error.ts'
import { createPause, Interrupted } from '../forecast/pause.ts'
import { createTermForecaster } from '../forecast/term-forecaster.ts'
import { giveWay } from '../give-way.ts'
import type { LogFields, Logger } from '../logger.ts'
import { createPoller } from '../poller.ts'
import { STOP, type ThreadMessage, type ThreadTask } from './duty.ts'
import { createTermLearner } from './term-learner.ts'
import { useWasmBackend } from './wasm-backend.ts'

/**
 * The thread that learns, for one term: how long jobs take, and how much work will come. Both take turns: they share the
 * network's backend and a connection, and neither is in a hurry.
 */
const main = async ({
  url,
  applicationName,
  term,
  leadSeconds,
  sharesEstimates,
}: ThreadTask): Promise<void> => {
  // Jobs come first, also those that run in threads.
  giveWay(10)
  await useWasmBackend()
  const database = createDatabase({
    url,
    applicationName,
    maxConnections: 1,
    settings: RELAXED_COMMIT,
    onError: fail,
  })
  const learner = createTermLearner({ run: database.run, term, logger, sharesEstimates })
  const stopping = new AbortController()
  const forecaster = createTermForecaster({
    run: database.run,
    term,
    logger,
    leadSeconds,
    pause: createPause(stopping.signal),
  })
  const pollers = [
    createPoller({ step: learner.step, onError: fail }),
    createPoller({ step: forecaster.step, onError: (error) => error instanceof Interrupted || fail(error) }),
  ]
  parentPort?.once('message', async (message) => {
    if (message !== STOP) return
    stopping.abort()
    await Promise.all(pollers.map((poller) => poller.stop()))
    await database.close()
    parentPort?.close()
  })
  for (const poller of pollers) poller.start()
}

const say = (message: ThreadMessage): void => parentPort?.postMessage(message)

const fail = (error: Error): void => say({ kind: 'failed', reason: describeError(error) })

const log =
  (level: keyof Logger) =>
  (message: string, fields?: LogFields): void =>
    say({ kind: 'log', level, message, fields })

const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }

await main(workerData)
