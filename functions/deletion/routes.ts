import { createRouter } from '../http/validation.ts'
import { accountDeletionRoutes } from './account-routes.ts'
import { exportRoutes } from './export-routes.ts'
import { orgDeletionRoutes } from './org-routes.ts'

/** Routes to export and delete an organisation or an account. */
export const deletionRoutes = () =>
  createRouter()
    .route('/', exportRoutes())
    .route('/', orgDeletionRoutes())
    .route('/', accountDeletionRoutes())
