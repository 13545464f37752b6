import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import type { Attributes } from './otlp.ts'
import { beginTrace, passOn } from './request-trace.ts'

/** Asked by machines all the time: nobody looks for them among traces. */
const QUIET = new Set(['/healthz', '/readyz', '/metrics', '/autoscale'])

/** Gives each request its part of a trace, and sends what was recorded once it is answered. */
export const traceRequests = (): MiddlewareHandler<AppEnv> => async (c, next) => {
  const { tracing } = c.get('services')
  const incoming = c.req.header('traceparent')
  if (!tracing || QUIET.has(c.req.path)) {
    c.set('trace', passOn(incoming))
    return next()
  }
  const { trace, end } = beginTrace(incoming, tracing.isSampled)
  c.set('trace', trace)
  await next()
  if (!end) return
  const { status } = c.res
  const route = routeOf(c)
  const name = route ? `${c.req.method} ${route}` : c.req.method
  // A request that was refused has worked: only our own faults are errors of the server.
  const error = status >= 500 ? `answered ${status}` : undefined
  tracing.exporter.send(end(name, attributesOf(c, route, status), error), holdOf(c))
}

/** By OpenTelemetry's conventions for HTTP servers. The route and not the path, and no query: these have names and ids. */
const attributesOf = (c: Context<AppEnv>, route: string | undefined, status: number): Attributes => {
  const url = new URL(c.req.url)
  return {
    'http.request.method': c.req.method,
    'http.route': route,
    'http.response.status_code': status,
    'url.scheme': url.protocol.slice(0, -1),
    'server.address': url.hostname,
    'error.type': status >= 500 ? String(status) : undefined,
    'smartqueue.request.id': c.get('requestId'),
  }
}

/** Who has answered, as the API is documented: `/jobs/{id}`. Undefined: there is no such route. */
const routeOf = (c: Context<AppEnv>): string | undefined => {
  const path = routePath(c)
  return path.includes('*') ? undefined : path.replaceAll(/:(\w+)(?:\{.*?\})?/g, '{$1}')
}
