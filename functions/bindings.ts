import { z } from 'zod'
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
} from './settings.ts'
import type { StreamObjects } from './stream/object-link.ts'
import {
  ENDPOINT_RULE,
  isEndpoint,
  isRatio,
  PAIRS_RULE,
  parsePairs,
  RATIO_RULE,
  SAMPLERS,
} from './tracing/otel-settings.ts'

export type Assets = { fetch(url: URL): Promise<Response> }

const pairs = z.string().refine((text) => parsePairs(text) !== undefined, PAIRS_RULE)

/** What wrangler binds to the Worker. A bad value refuses every request with a log line that names it. */
const bindingsSchema = z.object({
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL'),
  AUTH_KEYS: z
    .string()
    .transform((text, ctx) => {
      try {
        return JSON.parse(text)
      } catch {
        ctx.addIssue({ code: 'custom', message: 'must be a JSON Web Key Set' })
        return z.NEVER
      }
    })
    .pipe(
      z.object({
        keys: z
          .array(
            z.object({
              kty: z.literal('OKP'),
              crv: z.literal('Ed25519'),
              kid: z.string().min(1),
              x: z.string(),
              d: z.string(),
            }),
          )
          .min(1),
      }),
    ),
  /** Origins whose pages may call the API from a browser, comma-separated. None unless set. */
  CORS_ORIGINS: z
    .string()
    .default('')
    .refine((text) => parseOrigins(text) !== undefined, ORIGINS_RULE)
    .transform((text) => parseOrigins(text) ?? []),
  /**
   * Who may create an account. Defaults to `invite`, so a deployment that forgot to choose is not open to
   * everyone.
   */
  SMARTQUEUE_REGISTRATION: z.enum(REGISTRATION_MODES, REGISTRATION_RULE).default('invite'),
  /** How many organisations an account may create. Each has its own quotas. */
  SMARTQUEUE_ORGS_PER_ACCOUNT: z
    .string()
    .default(String(DEFAULT_ORGS_PER_ACCOUNT))
    .refine(
      (text) => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_ORGS_PER_ACCOUNT,
      `must be a whole number from 1 to ${MAX_ORGS_PER_ACCOUNT}`,
    )
    .transform(Number),
  /**
   * The header in which the proxy in front sends the client's address. If unset, no header is trusted:
   * without such a proxy a client can send any value.
   */
  SMARTQUEUE_CLIENT_ADDRESS_HEADER: z
    .string()
    .regex(HEADER_NAME, HEADER_RULE)
    .default(NO_HEADER)
    .transform((name) => (name.toLowerCase() === NO_HEADER ? undefined : name)),
  /** The bearer token for metrics and the scaling signal. Unset: anybody may read them. */
  OPERATIONS_TOKEN: z
    .string()
    .regex(/^\S{16,}$/, 'must have 16 characters or more, and no spaces')
    .optional(),
  /** The stream of each organisation. */
  JOB_STREAM: z.custom<StreamObjects>(
    (value) => typeof value === 'object' && value !== null,
    'must be bound',
  ),
  /** What is in functions/assets. */
  ASSETS: z.custom<Assets>((value) => typeof value === 'object' && value !== null, 'must be bound'),
  /** host:port of a gateway that stands in for Neon's proxy. Unset in production. */
  NEON_GATEWAY: z.string().optional(),
  /** Where spans are sent to, over OTLP/HTTP. Without it nothing is traced. The names are OpenTelemetry's. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().refine(isEndpoint, ENDPOINT_RULE).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: pairs.optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs.optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).optional(),
  OTEL_TRACES_SAMPLER_ARG: z.string().refine(isRatio, RATIO_RULE).optional(),
})

export type RawBindings = Record<string, unknown>
export type Bindings = z.output<typeof bindingsSchema>
export type PrivateKey = Bindings['AUTH_KEYS']['keys'][number]

export const parseBindings = (raw: RawBindings): Bindings => {
  const parsed = bindingsSchema.safeParse(raw)
  if (parsed.success) return parsed.data
  const reasons = parsed.error.issues.map((issue) => `${String(issue.path[0])}: ${issue.message}`)
  throw new Error(`Bad configuration. ${reasons.join('; ')}`)
}
