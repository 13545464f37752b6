import { createRouter } from '../http/validation.ts'

const PATH = '/openapi.json'

/**
 * The document is an asset that functions/build/ makes, and is answered here all the same: like any other answer it is for
 * the origins that are listed and no others. `/docs` is a static page that renders it.
 */
export const apiDocsRoutes = () =>
  createRouter().get(PATH, async (c) => {
    const asset = await c.get('services').assets.fetch(new URL(PATH, c.req.url))
    if (!asset.ok || !asset.body) throw new Error(`The assets have no ${PATH}: npm run build makes it`)
    return c.body(asset.body, 200, { 'content-type': 'application/json' })
  })
