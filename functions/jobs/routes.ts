import { createRouter } from '../http/validation.ts'
import { readRoutes } from './read-routes.ts'
import { submitRoutes } from './submit-routes.ts'

export const jobRoutes = () => createRouter().route('/', submitRoutes()).route('/', readRoutes())
