import type { Run } from '../db/query.ts'
import type { Principal } from './auth/principal.ts'
import type { RawBindings } from './bindings.ts'
import type { Services } from './services.ts'

/** The hono environment of every route. `principal` and `run` are set behind `access(…)` only. */
export type AppEnv = {
  Bindings: RawBindings
  Variables: {
    requestId: string
    services: Services
    principal: Principal
    /** Statements in the organisation of the principal. */
    run: Run
  }
}
