import { createRouter } from '../http/validation.ts'
import { keyRoutes } from './key-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { userRoutes } from './user-routes.ts'

export const authRoutes = () =>
  createRouter()
    .route('/', sessionRoutes())
    .route('/', signInRoutes())
    .route('/', keyRoutes())
    .route('/', userRoutes())
