import { createRouter } from '../http/validation.ts'
import { modelRoutes } from './model-routes.ts'
import { predictionRoutes } from './prediction-routes.ts'

export const predictionRouter = () => createRouter().route('/', predictionRoutes()).route('/', modelRoutes())
