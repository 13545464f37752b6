/**
 * The gateway of a checkout, in a process of its own, so that its CPU time can be told from that of the benchmark. Tells its
 * parent the bindings of the functions.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PrivateKey } from '../../../functions/bindings.ts'

const [root = '.', target = ''] = process.argv.slice(2)

const load = async <Module>(path: string): Promise<Module> =>
  (await import(pathToFileURL(resolve(root, path)).href)) as Module

const { startNeonGateway } = await load<typeof import('../../../worker-runtime/local/neon-gateway.ts')>(
  'worker-runtime/local/neon-gateway.ts',
)
const { createSigningKey } = await load<{ createSigningKey(): PrivateKey }>('worker-runtime/signing-key.ts')
const gateway = await startNeonGateway({ target })
process.once('disconnect', () => process.exit(0))
process.send?.({
  bindings: {
    DATABASE_URL: gateway.connectionString,
    NEON_GATEWAY: gateway.address,
    AUTH_KEYS: JSON.stringify({ keys: [createSigningKey()] }),
    SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'none',
    SMARTQUEUE_REGISTRATION: 'open',
  },
})
