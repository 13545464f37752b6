import { createRoute } from '@hono/zod-openapi'
import { getEtaAccuracy, getModelCard } from '../../db/queries/model-card.ts'
import { access } from '../auth/permit.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { LATE_P90_MS, WAIT_P90 } from './eta/eta.ts'
import { modelCard, viewModelCard } from './model-card.ts'

export const modelRoutes = () =>
  createRouter().openapi(modelRoute, async (c) => {
    const run = c.get('run')
    const [[card], [eta]] = await Promise.all([
      run(getModelCard()),
      run(getEtaAccuracy(c.get('principal').org_id, { share: WAIT_P90, ms: LATE_P90_MS })),
    ])
    if (!card || !eta) throw new Error('Nothing is known of the model')
    return c.json(viewModelCard(card, eta), 200)
  })

const modelRoute = createRoute({
  method: 'get',
  path: '/model',
  tags: ['prediction'],
  summary: 'Read the model card',
  description:
    'What predicts, from what, how good it was, and which versions there were. Of all organisations together, but for `eta`, ' +
    'which is about jobs of your own.',
  ...access('jobs:read'),
  responses: {
    200: jsonContent(modelCard, 'The model card'),
    ...problems('unauthenticated', 'forbidden'),
  },
})
