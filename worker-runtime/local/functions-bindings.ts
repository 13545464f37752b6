import type { Config } from '../config.ts'
import type { Home } from './home.ts'
import type { NeonGateway } from './neon-gateway.ts'

/** What the functions on this machine are told, whoever runs them. They trace as the workers do, which see it in their environment. */
export const functionsBindings = (
  config: Config,
  gateway: Pick<NeonGateway, 'connectionString' | 'address'>,
  home: Pick<Home, 'authKeys'>,
): Record<string, string> => ({
  DATABASE_URL: gateway.connectionString,
  NEON_GATEWAY: gateway.address,
  AUTH_KEYS: home.authKeys,
  CORS_ORIGINS: config.SMARTQUEUE_CORS_ORIGINS,
  SMARTQUEUE_REGISTRATION: config.SMARTQUEUE_REGISTRATION ?? 'invite',
  SMARTQUEUE_ORGS_PER_ACCOUNT: String(config.SMARTQUEUE_ORGS_PER_ACCOUNT),
  // wrangler.toml names Cloudflare's header, which only clients themselves would set here.
  SMARTQUEUE_CLIENT_ADDRESS_HEADER: config.SMARTQUEUE_CLIENT_ADDRESS_HEADER,
  ...tracingSettings(config),
})

const tracingSettings = (config: Config): Record<string, string> =>
  Object.fromEntries(
    Object.entries(config).flatMap(([name, value]) =>
      name.startsWith('OTEL_') && typeof value === 'string' ? [[name, value]] : [],
    ),
  )
