import { createRouter } from '../http/validation.ts'
import { auditRoutes } from './audit-routes.ts'
import { invitationRoutes } from './invitation-routes.ts'
import { memberRoutes } from './member-routes.ts'
import { orgRoutes } from './org-routes.ts'
import { quotaRoutes } from './quota-routes.ts'

/** Fixed paths before those with an id: the first that fits answers. */
export const organisationRoutes = () =>
  createRouter()
    .route('/', memberRoutes())
    .route('/', quotaRoutes())
    .route('/', auditRoutes())
    .route('/', invitationRoutes())
    .route('/', orgRoutes())
