import { createRouter } from '../http/validation.ts'
import { bulkRoutes } from './bulk-routes.ts'
import { changeRoutes } from './change-routes.ts'
import { explainRoutes } from './explain-routes.ts'
import { graphRoutes } from './graph-routes.ts'
import { readRoutes } from './read-routes.ts'
import { registryRoutes } from './registry-routes.ts'
import { submitRoutes } from './submit-routes.ts'

/** Fixed paths before those with an id: the first that fits answers. */
export const jobRoutes = () =>
  createRouter()
    .route('/', submitRoutes())
    .route('/', registryRoutes())
    .route('/', bulkRoutes())
    .route('/', readRoutes())
    .route('/', explainRoutes())
    .route('/', graphRoutes())
    .route('/', changeRoutes())
