import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type BreakableProxy = {
  readonly url: string
  /** Ends all connections and takes no new ones, as a network that is gone does. */
  break(): void
  mend(): void
  stop(): void
}

/** A network between a browser and a server, which can be cut. */
export const startBreakableProxy = async (target: string): Promise<BreakableProxy> => {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let broken = false
  const server = createServer((near) => {
    if (broken) return void near.destroy()
    const far = connect(Number(port), hostname)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    break: () => {
      broken = true
      cut()
    },
    mend: () => {
      broken = false
    },
    stop: () => {
      server.close()
      cut()
    },
  }
}
