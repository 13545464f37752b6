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

/** What arrives on the socket as the body of a response. Credit is given back as the client takes it. */
export const translate = (socket: WebSocket): ReadableStream<Uint8Array> => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const encoder = new TextEncoder()
  let written: Promise<unknown> = Promise.resolve()

  const write = (text: string): void => {
    written = written.then(() => writer.write(encoder.encode(text)))
  }
  const takeFrame = (text: string): void => {
    const frame = JSON.parse(text) as Frame
    write(toSse(frame, text))
    const taken = frame.events?.length ?? 0
    written = written.then(() => taken > 0 && socket.send(JSON.stringify({ type: 'credit', n: taken })))
    written.catch(hangUp)
  }
  const hangUp = (): void => {
    try {
      socket.close(1000, 'The client has gone.')
    } catch {
      // It is closed already.
    }
  }

  socket.accept()
  socket.addEventListener('message', ({ data }) => takeFrame(String(data)))
  socket.addEventListener('close', ({ code, reason }) => {
    write(`event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`)
    written.then(() => writer.close()).catch(() => {})
  })
  writer.closed.catch(hangUp)
  return readable
}
