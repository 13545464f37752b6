import type { AutoscaleRow } from '../../db/queries/autoscale.ts'
import type { ScalingSignal } from '../../db/rules/autoscale.ts'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import type { AutoscaleLook, LookAtAutoscale } from '../cluster/autoscale-look.ts'

export type ApiAnswer = { readonly status: number; readonly body: object }

const GROUP = 'external.metrics.k8s.io'
const GROUP_VERSION = `${GROUP}/v1beta1`

/** Workers that each kind of work asks for: an autoscaler's target is always one for each pod. */
const METRICS: Readonly<Record<string, (signal: ScalingSignal) => number>> = {
  smartqueue_backlog_workers: ({ needed }) => needed.B,
  smartqueue_arriving_workers: ({ needed }) => needed.R,
  smartqueue_forecast_workers: ({ needed }) => needed.F,
}

export const EXTERNAL_METRICS = Object.keys(METRICS)

/**
 * Answers a GET to an API server of external metrics, in the words of k8s.io/metrics. `namespace` is that of the workers: the
 * metrics belong to no other.
 */
export const createExternalMetrics = (options: { namespace: string; look: LookAtAutoscale }) => {
  const values = `/apis/${GROUP_VERSION}/namespaces/${options.namespace}/`

  return async (url: URL, accept = ''): Promise<ApiAnswer> => {
    const found = DISCOVERY.get(url.pathname)
    if (found && !takesPlainJson(accept)) return failure('NotAcceptable', 'It is served as application/json.')
    if (found) return { status: 200, body: found }
    const metric = url.pathname.startsWith(values) ? url.pathname.slice(values.length) : ''
    const read = Object.hasOwn(METRICS, metric) ? METRICS[metric] : undefined
    if (!read) return failure('NotFound', `There is no ${url.pathname} here.`)
    if (url.searchParams.get('labelSelector'))
      return failure('BadRequest', `${metric} has no labels: leave the selector of the metric out.`)
    return valuesOf(metric, read, await options.look())
  }
}

/**
 * The aggregator asks for all of discovery in one document first, and once that is refused for the lists below. Versions before
 * 1.30 take any 200 for the document, cannot read it, and call the API stale: no namespace can be deleted then.
 */
const takesPlainJson = (accept: string): boolean => accept.split(',').some((range) => !/;\s*as=/.test(range))

const CODES = {
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  ServiceUnavailable: 503,
}

/** The message is what Kubernetes shows in the conditions of a HorizontalPodAutoscaler. */
export const failure = (reason: keyof typeof CODES, message: string): ApiAnswer => {
  const code = CODES[reason]
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code }
  return { status: code, body }
}

const valuesOf = (
  metricName: string,
  read: (signal: ScalingSignal) => number,
  found: AutoscaleLook,
): ApiAnswer => {
  if (found.kind !== 'fresh') return failure('ServiceUnavailable', found.because)
  const value = quantityOf(read(scalingSignal(found.row)))
  const item = { metricName, metricLabels: {}, timestamp: timeOf(found.row), value }
  const body = { kind: 'ExternalMetricValueList', apiVersion: GROUP_VERSION, metadata: {}, items: [item] }
  return { status: 200, body }
}

/** A number with three places, as Kubernetes writes it: 1.78 is `1780m`. */
export const quantityOf = (value: number): string =>
  `${Math.min(Math.round(value * 1000), Number.MAX_SAFE_INTEGER)}m`

/** RFC 3339 to the second. */
const timeOf = ({ taken_at }: AutoscaleRow): string => taken_at.replace(/\.\d+Z$/, 'Z')

const VERSION = { groupVersion: GROUP_VERSION, version: 'v1beta1' }
const DESCRIPTION = { name: GROUP, versions: [VERSION], preferredVersion: VERSION }

/**
 * What an API server tells of itself. By the last of them Kubernetes decides whether the API is available, and as long as one
 * is not, no namespace can be deleted: so it does not depend on the database.
 */
const DISCOVERY = new Map<string, object>([
  ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [DESCRIPTION] }],
  [`/apis/${GROUP}`, { kind: 'APIGroup', apiVersion: 'v1', ...DESCRIPTION }],
  [
    `/apis/${GROUP_VERSION}`,
    {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: GROUP_VERSION,
      resources: EXTERNAL_METRICS.map((name) => ({
        name,
        singularName: '',
        namespaced: true,
        kind: 'ExternalMetricValueList',
        verbs: ['get'],
      })),
    },
  ],
])
