import { createRouter } from '../http/validation.ts'
import { accountDeletionRoutes } from './account-routes.ts'
import { exportRoutes } from './export-routes.ts'
import { orgDeletionRoutes } from './org-routes.ts'

/** Deleting an organisation or an account, and the export before it. */
export const deletionRoutes = () =>
  createRouter()
    .route('/', exportRoutes())
    .route('/', orgDeletionRoutes())
    .route('/', accountDeletionRoutes())
