import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm'
import { enableProdMode, setBackend } from '@tensorflow/tfjs-core'

/** Makes tfjs compute with WebAssembly in this thread, a worker thread or the main one. */
export const useWasmBackend = async (): Promise<void> => {
  enableProdMode()
  setThreadsCount(1)
  setWasmPaths(`${dirname(createRequire(import.meta.url).resolve('@tensorflow/tfjs-backend-wasm'))}/`)
  await setBackend('wasm')
}
