/** The entry of the Worker on plain workerd: Cloudflare and wrangler serve assets before they ask the functions. */

// @ts-expect-error Written by build.ts, next to the bundle of this file.
import listed from './assets.json'
import type { Asset } from './assets.ts'
// @ts-expect-error The bundle of the functions.
import functions, { JobStream } from './index.js'

type Env = { ASSETS: Fetcher }

const assets = new Map<string, Asset>(Object.entries(listed))

const isForAssets = ({ method, url }: Request): boolean => {
  if (method !== 'GET' && method !== 'HEAD') return false
  const asset = assets.get(pathOf(url))
  return asset !== undefined && !asset.workerFirst
}

/** Avoids `new URL`, which takes a fifth of a minimal request. */
const pathOf = (url: string): string => {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = url.indexOf('?', start)
  return end === -1 ? url.slice(start) : url.slice(start, end)
}

export { JobStream }

export default {
  fetch: (request: Request, env: Env, context: ExecutionContext): Response | Promise<Response> =>
    isForAssets(request) ? env.ASSETS.fetch(request) : functions.fetch(request, env, context),
}
