import { parentPort } from 'node:worker_threads'

/** A learner in a round that does not end: it says so, and hears nothing any more. */
parentPort?.postMessage({ kind: 'log', level: 'info', message: 'spins' })
for (;;);
