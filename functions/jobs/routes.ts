import { createRouter } from '../http/validation.ts'
import { changeRoutes } from './change-routes.ts'
import { readRoutes } from './read-routes.ts'
import { submitRoutes } from './submit-routes.ts'

export const jobRoutes = () =>
  createRouter().route('/', submitRoutes()).route('/', readRoutes()).route('/', changeRoutes())
