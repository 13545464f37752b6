import { createRouter } from '../http/validation.ts'
import { keyRoutes } from './key-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { userRoutes } from './user-routes.ts'

export const authRoutes = () =>
  createRouter().route('/', sessionRoutes()).route('/', keyRoutes()).route('/', userRoutes())
