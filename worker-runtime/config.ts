import { z } from 'zod'
import { LOG_LEVELS } from '../db/rules/log-levels.ts'
import { passwordsOf } from '../functions/redaction.ts'
import {
  DEFAULT_ORGS_PER_ACCOUNT,
  HEADER_NAME,
  HEADER_RULE,
  MAX_ORGS_PER_ACCOUNT,
  NO_HEADER,
  ORIGINS_RULE,
  parseOrigins,
  REGISTRATION_MODES,
  REGISTRATION_RULE,
} from '../functions/settings.ts'
import {
  ENDPOINT_RULE,
  isEndpoint,
  isRatio,
  PAIRS_RULE,
  parsePairs,
  RATIO_RULE,
  SAMPLERS,
  secretsOfHeaders,
} from '../functions/tracing/otel-settings.ts'
import { parseConnections } from './connections/named-connections.ts'
import { parseAllowList } from './egress/address-guard.ts'
import { parseExecutables } from './executables.ts'

/** One label at least: an empty selector would be all pods of the namespace. */
const LABELS = /^[\w./-]+=[\w.-]+(,[\w./-]+=[\w.-]+)*$/

/** Everything that the environment can set. The README's table has a row for each. */
const settings = {
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .optional(),
  PORT: wholeNumber(1, 65_535).default(8787),
  SMARTQUEUE_HOME: z.string().min(1).default('.smartqueue'),
  SMARTQUEUE_WORKER_SLOTS: wholeNumber(1, 1000).default(10),
  /** As many as slots, unless set. */
  SMARTQUEUE_WORKER_CPU_UNITS: wholeNumber(1, 100_000).optional(),
  /** The memory of the machine or of its container, unless set. */
  SMARTQUEUE_WORKER_MEMORY_MB: wholeNumber(64, 100_000_000).optional(),
  SMARTQUEUE_POLICY: z.enum(['learned', 'fifo']).default('learned'),
  SMARTQUEUE_RETENTION_DAYS: wholeNumber(1, 36_500).default(30),
  /** So many times its p99 an attempt without a timeout may take; 0: no limit. */
  SMARTQUEUE_AUTO_TIMEOUT: wholeNumber(0, 1000).default(10),
  SMARTQUEUE_MIN_WORKERS: wholeNumber(1, 50).default(1),
  /** 5, or as many as there are at least. */
  SMARTQUEUE_MAX_WORKERS: wholeNumber(1, 1000).optional(),
  /** How soon what is queued should be worked off: workers are scaled by it. */
  SMARTQUEUE_DRAIN_GOAL_SECONDS: wholeNumber(1, 86_400).default(20),
  /** How long a worker takes to start: work of so many seconds ahead is scaled for. */
  SMARTQUEUE_LEAD_SECONDS: wholeNumber(1, 3600).default(75),
  /** Whether a new series may start from other organisations' runs of its type. */
  SMARTQUEUE_SHARED_ESTIMATES: z.enum(['on', 'off']).default('off'),
  /** Where a worker answers probes and Prometheus. Unset: nowhere. */
  SMARTQUEUE_METRICS_PORT: wholeNumber(1, 65_535).optional(),
  /** Pods of workers, as Kubernetes selects them: what the controller sets deletion costs of. */
  SMARTQUEUE_POD_SELECTOR: z
    .string()
    .regex(LABELS, 'must be labels as in app.kubernetes.io/name=smartqueue, comma-separated')
    .default('app.kubernetes.io/name=smartqueue,app.kubernetes.io/component=worker'),
  /** Where the metrics adapter answers Kubernetes, over TLS. */
  SMARTQUEUE_ADAPTER_PORT: wholeNumber(1, 65_535).default(6443),
  /** With tls.crt and tls.key, as a mounted Secret has them. */
  SMARTQUEUE_ADAPTER_TLS_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .default('/etc/smartqueue/tls'),
  SMARTQUEUE_DRAIN_SECONDS: wholeNumber(0, 3600).default(25),
  SMARTQUEUE_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  SMARTQUEUE_CORS_ORIGINS: z
    .string()
    .default('')
    .refine((text) => parseOrigins(text) !== undefined, ORIGINS_RULE),
  /**
   * If unset, `npm run dev` is open to everyone on this machine, and `npm run functions` requires an
   * invitation.
   */
  SMARTQUEUE_REGISTRATION: z.enum(REGISTRATION_MODES, REGISTRATION_RULE).optional(),
  SMARTQUEUE_ORGS_PER_ACCOUNT: wholeNumber(1, MAX_ORGS_PER_ACCOUNT).default(DEFAULT_ORGS_PER_ACCOUNT),
  /** The header in which the proxy in front sends the client's address. */
  SMARTQUEUE_CLIENT_ADDRESS_HEADER: z.string().regex(HEADER_NAME, HEADER_RULE).default(NO_HEADER),
  SMARTQUEUE_HTTP_ALLOW: z.string().default('').transform(orIssue(parseAllowList)),
  /** Without it there are no shell jobs. */
  SMARTQUEUE_SHELL_ALLOW: z.string().transform(orIssue(parseExecutables)).optional(),
  /** Databases that handlers may use, by name. */
  SMARTQUEUE_CONNECTIONS: z.string().transform(orIssue(parseConnections)).optional(),
  /** Where spans are sent to, over OTLP/HTTP. Without it nothing is traced. The names are OpenTelemetry's. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().refine(isEndpoint, ENDPOINT_RULE).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: pairs().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs().optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).optional(),
  OTEL_TRACES_SAMPLER_ARG: z.string().refine(isRatio, RATIO_RULE).optional(),
}

/** Names that may be set. */
export const SETTINGS: readonly string[] = Object.keys(settings)

const DEFAULT_MAX_WORKERS = 5

const schema = z.object(settings).transform((config, ctx) => {
  const { SMARTQUEUE_MIN_WORKERS: min, SMARTQUEUE_MAX_WORKERS: max = Math.max(min, DEFAULT_MAX_WORKERS) } =
    config
  if (max < min) {
    const message = `must not be less than SMARTQUEUE_MIN_WORKERS, which is ${min}`
    ctx.addIssue({ code: 'custom', path: ['SMARTQUEUE_MAX_WORKERS'], message })
  }
  return { ...config, SMARTQUEUE_MAX_WORKERS: max }
})

export type Config = z.output<typeof schema>

/** The configuration cannot be used. The message is one line for each variable, and names it. */
export class ConfigError extends Error {}

/** Read once, at start. An empty variable counts as unset. */
export const parseConfig = (env: Record<string, string | undefined>): Config => {
  const given = Object.entries(env).filter(([, value]) => value !== undefined && value !== '')
  const faults = given
    .filter(([name]) => name.startsWith('SMARTQUEUE_') && !SETTINGS.includes(name))
    .map(([name]) => `${name}: is not a setting of SmartQueue; see the table in README.md`)
  const parsed = schema.safeParse(Object.fromEntries(given))
  if (!parsed.success) faults.push(...parsed.error.issues.map(describe))
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults.join('\n'))
  return parsed.data
}

/** What must not be seen in any log. */
export const secretsOf = ({
  DATABASE_URL,
  SMARTQUEUE_CONNECTIONS = {},
  OTEL_EXPORTER_OTLP_HEADERS,
}: Config): string[] => [
  ...[DATABASE_URL, ...Object.values(SMARTQUEUE_CONNECTIONS).map(({ url }) => url)].flatMap(passwordsOf),
  ...secretsOfHeaders(OTEL_EXPORTER_OTLP_HEADERS),
]

const describe = (issue: z.core.$ZodIssue): string =>
  `${String(issue.path[0])}: ${issue.message.charAt(0).toLowerCase()}${issue.message.slice(1)}`

function wholeNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`)
}

function pairs() {
  return z.string().refine((text) => parsePairs(text) !== undefined, PAIRS_RULE)
}

/** A parser that throws, as a step of a schema. */
function orIssue<Parsed>(parse: (text: string) => Parsed) {
  return (text: string, ctx: z.RefinementCtx<string>): Parsed => {
    try {
      return parse(text)
    } catch (error) {
      ctx.addIssue({ code: 'custom', message: (error as Error).message })
      return z.NEVER
    }
  }
}
