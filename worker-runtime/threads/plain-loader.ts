import { registerHooks } from 'node:module'
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'

/** How a thread gets its modules: it asks for one, and sleeps until the number changes. */
export type ModuleSupply = {
  readonly entry: string
  readonly port: MessagePort
  readonly answered: Int32Array
}

/** The first module of a plain thread: from here on TypeScript is asked for, not stripped. */
const { entry, port, answered }: ModuleSupply = workerData.supply

const askFor = (url: string): string | undefined => {
  const before = Atomics.load(answered, 0)
  port.postMessage(url)
  // If the answer came first, the number is another one already, and this does not wait.
  Atomics.wait(answered, 0, before)
  return receiveMessageOnPort(port)?.message
}

registerHooks({
  load: (url, context, nextLoad) => {
    const source = url.endsWith('.ts') ? askFor(url) : undefined
    return source === undefined ? nextLoad(url, context) : { format: 'module', source, shortCircuit: true }
  },
})

await import(entry)
