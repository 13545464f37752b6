import type { Run } from '../db/query.ts'
import type { Principal } from './auth/principal.ts'
import type { RawBindings } from './bindings.ts'
import type { Services } from './services.ts'
import type { RequestTrace } from './tracing/request-trace.ts'

/** The hono environment of every route. The last three are set behind `access(…)` only. */
export type AppEnv = {
  Bindings: RawBindings
  Variables: {
    requestId: string
    services: Services
    trace: RequestTrace
    /** Set by requests without a principal that have changed something of an organisation. */
    changedOrgId: string | undefined
    principal: Principal
    /** The organisation of the principal's token or key; an admin may look at another. */
    homeOrgId: string
    /** Statements in the organisation of the principal. */
    run: Run
  }
}
