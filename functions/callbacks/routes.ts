import { createRouter } from '../http/validation.ts'
import { endpointRoutes } from './endpoint-routes.ts'
import { jobCallbackRoutes } from './job-callback-routes.ts'
import { secretRoutes } from './secret-routes.ts'

/** Who outside is told when jobs have ended. */
export const callbackRoutes = () =>
  createRouter().route('/', endpointRoutes()).route('/', secretRoutes()).route('/', jobCallbackRoutes())
