/** Server-sent events. The function translates, and so the object need know of sockets only, and can hibernate. */
type Frame = { type: string; cursor?: string; events?: { type: string; cursor: string }[] }

export const toSse = (frame: Frame, text: string): string => {
  switch (frame.type) {
    case 'events':
      return (frame.events ?? []).map((event) => block(event.type, event, event.cursor)).join('')
    case 'ping':
      // An id without data is remembered, and no event.
      return `: ping\nid: ${frame.cursor}\n\n`
    case 'hello':
    case 'resync':
      return `id: ${frame.cursor}\nevent: ${frame.type}\ndata: ${text}\n\n`
    default:
      return `event: ${frame.type}\ndata: ${text}\n\n`
  }
}

const block = (event: string, data: object, id: string): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** They tell the newest state: one that waits for a slow client is replaced by the next. */
const REPLACEABLE = ['summary', 'workers', 'progress']

/** What arrives on the socket as the body of a response. Credit is given back as the client takes it. */
export const translate = (socket: WebSocket): ReadableStream<Uint8Array> => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const encoder = new TextEncoder()
  let waiting: { type: string; text: string; events: number }[] = []
  let isWriting = false
  let isOver = false

  const put = (type: string, text: string, events = 0): void => {
    if (REPLACEABLE.includes(type)) waiting = waiting.filter((other) => other.type !== type)
    waiting.push({ type, text, events })
    if (!isWriting) writeAll().catch(hangUp)
  }
  const writeAll = async (): Promise<void> => {
    isWriting = true
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await writer.write(encoder.encode(next.text))
      if (next.events > 0 && !isOver) socket.send(JSON.stringify({ type: 'credit', n: next.events }))
    }
    isWriting = false
    if (isOver) await writer.close()
  }
  const hangUp = (): void => {
    try {
      socket.close(1000, 'The client has gone.')
    } catch {
      // It is closed already.
    }
  }

  socket.accept()
  socket.addEventListener('message', ({ data }) => {
    const text = String(data)
    const frame = JSON.parse(text) as Frame
    put(frame.type, toSse(frame, text), frame.events?.length)
  })
  socket.addEventListener('close', ({ code, reason }) => {
    isOver = true
    put('close', `event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`)
  })
  writer.closed.catch(hangUp)
  return readable
}
