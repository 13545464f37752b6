import { createRouter } from '../http/validation.ts'
import { changeRoutes } from './change-routes.ts'
import { readRoutes } from './read-routes.ts'
import { runRoutes } from './run-routes.ts'

export const scheduleRoutes = () =>
  createRouter().route('/', readRoutes()).route('/', changeRoutes()).route('/', runRoutes())
