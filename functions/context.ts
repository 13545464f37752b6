import type { Principal } from './auth/access-token.ts'
import type { RawBindings } from './bindings.ts'
import type { Services } from './services.ts'

/** The hono environment of every route. `principal` is set behind `requireAuth()` only. */
export type AppEnv = {
  Bindings: RawBindings
  Variables: {
    requestId: string
    services: Services
    principal: Principal
  }
}
