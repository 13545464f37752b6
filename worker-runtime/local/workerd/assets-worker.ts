/** Serves the files of `assets.json` from the disk, as the ASSETS binding. Runs on workerd. */

// @ts-expect-error Written by build.ts, next to the bundle of this file.
import listed from './assets.json'
import type { Asset } from './assets.ts'

type Env = { FILES: Fetcher }

const assets = new Map<string, Asset>(Object.entries(listed))

export default {
  fetch: async (request: Request, { FILES }: Env): Promise<Response> => {
    const asset = assets.get(new URL(request.url).pathname)
    if (!asset) return new Response(null, { status: 404 })
    if ('redirect' in asset) return new Response(null, { status: 307, headers: { location: asset.redirect } })
    const { file, headers } = asset
    if (request.headers.get('if-none-match') === headers.etag) {
      return new Response(null, { status: 304, headers })
    }
    const { ok, body } = await FILES.fetch(`http://files${file}`)
    return ok ? new Response(body, { headers }) : new Response(null, { status: 404 })
  },
}
