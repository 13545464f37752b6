import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** True for the moment: whoever binds the port next has it. Good enough to say so in one clear line. */
export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)))
  })

/**
 * Below what systems give to outgoing connections (32768 and up), which one of them could have before the port
 * is bound. At random, so that two that ask at the same time get different ones.
 */
const FROM = 20_000
const TO = 32_767

export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(FROM, TO)
    if (await isPortFree(port)) return port
  }
}
