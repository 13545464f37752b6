import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

export type RawRequest = {
  method: string
  path: string
  /** Names and values; a name may occur twice. */
  headers: [string, string][]
  /** Multiple parts are sent chunked, without a length. */
  body?: Buffer | Buffer[] | undefined
}

export type RawAnswer = { status: number; type: string; text: string }

/**
 * Sends requests that `fetch` would fix or reject: any headers, a body with any method, chunks. Streams are
 * closed once they open.
 */
export const createRawClient = (origin: string, maxSockets: number) => {
  const agent = new Agent({ keepAlive: true, maxSockets })

  const send = (wanted: RawRequest): Promise<RawAnswer> =>
    new Promise((resolve, reject) => {
      const { method, path, headers, body } = wanted
      const flat = headers.flat()
      if (Array.isArray(body)) flat.push('transfer-encoding', 'chunked')
      else if (body) flat.push('content-length', String(body.length))
      const sent = request(new URL(origin), { agent, method, path, headers: ['host', 'localhost', ...flat] })
      // The server may close an idle connection just as it is reused.
      sent.on('error', (error) => (sent.reusedSocket ? resolve(send(wanted)) : reject(error)))
      sent.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve(toAnswer(response, ''))
      })
      sent.on('response', (response) => {
        if (!response.headers['content-type']?.startsWith('text/event-stream')) {
          // An export breaks off if its caller loses access halfway, for example because another request deletes the account.
          const isExport = response.headers['content-type'] === 'application/x-ndjson'
          const cutOff = (error: Error): void => (isExport ? resolve(toAnswer(response, '')) : reject(error))
          text(response).then((answer) => resolve(toAnswer(response, answer)), cutOff)
          return
        }
        response.destroy()
        resolve(toAnswer(response, ''))
      })
      for (const chunk of [body ?? []].flat()) sent.write(chunk)
      sent.end()
    })

  return { send, close: () => agent.destroy() }
}

const toAnswer = ({ statusCode = 0, headers }: IncomingMessage, answer: string): RawAnswer => ({
  status: statusCode,
  type: headers['content-type'] ?? '',
  text: answer,
})
