import { createRouter } from '../http/validation.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import { hookRoutes } from './hook-routes.ts'
import { sourceRoutes } from './source-routes.ts'

export const webhookRoutes = () =>
  createRouter().route('/', hookRoutes()).route('/', sourceRoutes()).route('/', deliveryRoutes())
