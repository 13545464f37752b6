/**
 * Starts workerd for all test files, in the process that runs them: to load wrangler takes a second of CPU, which each file
 * would pay for itself.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export type WorkerToStart = {
  configPath: string
  /** As it was bundled for all tests. */
  prebuilt?: boolean
  vars: Record<string, string>
}

/** A Durable Object that is to lose its memory, as it does when it hibernates; its sockets stay open. */
export type Eviction = { className: string; name: string }

type Harness = {
  listen(): Promise<{ url: URL }>
  close(): Promise<void>
  getWorker(): {
    evictDurableObject(className: string, options: { name: string; webSockets: 'hibernate' }): Promise<void>
  }
}

export const startWorkerdHost = async (bundle: string): Promise<{ url: string; stop(): Promise<void> }> => {
  const running = new Map<string, Harness>()

  const start = async ({ prebuilt, ...worker }: WorkerToStart): Promise<{ id: string; url: string }> => {
    const { createTestHarness } = await import('wrangler')
    const harness: Harness = createTestHarness({
      workers: [{ ...worker, ...(prebuilt && { prebuiltWorkerDir: bundle }) }],
    })
    const { url } = await harness.listen()
    const id = crypto.randomUUID()
    running.set(id, harness)
    return { id, url: url.origin }
  }

  const end = async (id: string): Promise<object> => {
    await running.get(id)?.close()
    running.delete(id)
    return {}
  }

  const evict = async (id: string, { className, name }: Eviction): Promise<object> => {
    await running.get(id)?.getWorker().evictDurableObject(className, { name, webSockets: 'hibernate' })
    return {}
  }

  const answer = async (request: IncomingMessage): Promise<object> => {
    const id = request.url?.slice(1) ?? ''
    if (request.method === 'DELETE') return end(id)
    if (request.method === 'PATCH') return evict(id, (await json(request)) as Eviction)
    return start((await json(request)) as WorkerToStart)
  }

  const server = createServer((request, response) => {
    answer(request).then(
      (body) => response.end(JSON.stringify(body)),
      (error: Error) => response.writeHead(500).end(JSON.stringify(error.stack ?? error.message)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      await Promise.all([...running.keys()].map(end))
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Asked of the host by a test file. */
export const startWorkerd = async (
  worker: WorkerToStart,
): Promise<{ url: URL; evict(object: Eviction): Promise<void>; stop(): Promise<void> }> => {
  const host = process.env.TEST_WORKERD_HOST
  if (!host) throw new Error('Run the tests with npm test: it hosts their workerd')
  const ask = async (path: string, init: RequestInit): Promise<{ id: string; url: string }> => {
    const response = await fetch(new URL(path, host), init)
    const body = await response.json()
    if (!response.ok) throw new Error(`workerd does not start: ${body}`)
    return body as { id: string; url: string }
  }
  const { id, url } = await ask('/', { method: 'POST', body: JSON.stringify(worker) })
  return {
    url: new URL(url),
    evict: async (object) => {
      await ask(`/${id}`, { method: 'PATCH', body: JSON.stringify(object) })
    },
    stop: async () => {
      await ask(`/${id}`, { method: 'DELETE' })
    },
  }
}
