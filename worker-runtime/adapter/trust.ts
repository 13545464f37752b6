import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ApiClient } from '../cluster/api-client.ts'
import { createPoller, type Poller } from '../poller.ts'
import { type FrontProxy, readFrontProxy } from './front-proxy.ts'
import type { TlsContext } from './tls-server.ts'

/** Certificates are renewed weeks before they end: half a minute is soon enough. */
const LOOK_MS = 30_000

/**
 * Watches what the adapter shows and whom it trusts: its own certificate, from a mounted Secret, and that of the cluster's
 * front proxy. What cannot be read leaves all as it was.
 */
export const createTrust = (options: {
  api: ApiClient
  tlsFolder: string
  /** Called with the first and with each that differs. If it throws it is called again. */
  onChange: (context: TlsContext, frontProxy: FrontProxy) => Promise<void>
  onError: (error: Error) => void
}): Poller & { look(): Promise<number> } => {
  let current: string | undefined

  const look = async (): Promise<number> => {
    const [frontProxy, cert, key] = await Promise.all([
      readFrontProxy(options.api),
      readFile(join(options.tlsFolder, 'tls.crt'), 'utf8'),
      readFile(join(options.tlsFolder, 'tls.key'), 'utf8'),
    ])
    const found = JSON.stringify([frontProxy, cert, key])
    if (found !== current) await options.onChange({ cert, key, ca: frontProxy.ca }, frontProxy)
    current = found
    return LOOK_MS
  }

  return { look, ...createPoller({ step: look, onError: options.onError }) }
}
