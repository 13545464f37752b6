import type { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm'
import { enableProdMode, setBackend } from '@tensorflow/tfjs-core'

/** Makes tfjs compute with WebAssembly in this thread, a worker thread or the main one. */
export const useWasmBackend = async (): Promise<void> => {
  enableProdMode()
  setThreadsCount(1)
  setWasmPaths(`${dirname(createRequire(import.meta.url).resolve('@tensorflow/tfjs-backend-wasm'))}/`)
  const removeAdded = watchListeners()
  const usable = await setBackend('wasm')
  removeAdded()
  if (!usable) throw new Error('The WASM backend of tfjs does not start')
}

/** Emscripten's start-up code answers a process's uncaught errors by throwing them again: that is ours to decide. */
const watchListeners = (): (() => void) => {
  const emitter: EventEmitter = process
  const before = EVENTS.flatMap((event) => emitter.listeners(event))
  return () => {
    for (const event of EVENTS) {
      const added = emitter.listeners(event).filter((listener) => !before.includes(listener))
      for (const listener of added) emitter.removeListener(event, listener as () => void)
    }
  }
}

const EVENTS = ['uncaughtException', 'unhandledRejection']
