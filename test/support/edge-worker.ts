import worker from '../../functions/index.ts'

export { JobStream } from '../../functions/index.ts'

/**
 * The Worker as `wrangler dev` runs it, but bundled beforehand: what it has left of a request is read after it. Else workerd
 * closes the connection while the client still sends, and the client may lose the answer.
 */
export default {
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    try {
      return await worker.fetch(request, env, context)
    } finally {
      await drain(request).catch(() => {})
    }
  },
}

type Env = Parameters<typeof worker.fetch>[1]

const drain = async (request: Request): Promise<void> => {
  if (!request.body || request.bodyUsed) return
  const reader = request.body.getReader()
  while (!(await reader.read()).done);
}
