import { createRedactor, passwordsOf } from '../redaction.ts'
import { secretsOfHeaders } from '../tracing/otel-settings.ts'

let redactor = createRedactor()

/** Told once, by the isolate's bindings: values that must never appear in a line. */
export const hideSecrets = (bindings: {
  DATABASE_URL: string
  AUTH_KEYS: { keys: { d: string }[] }
  OPERATIONS_TOKEN?: string | undefined
  OTEL_EXPORTER_OTLP_HEADERS?: string | undefined
}): void => {
  const { DATABASE_URL, AUTH_KEYS, OPERATIONS_TOKEN = [], OTEL_EXPORTER_OTLP_HEADERS: headers } = bindings
  const keys = AUTH_KEYS.keys.map(({ d }) => d)
  redactor = createRedactor(
    [passwordsOf(DATABASE_URL), keys, OPERATIONS_TOKEN, secretsOfHeaders(headers)].flat(),
  )
}

/** One line of JSON, without secrets. */
export const log = (level: 'warn' | 'error', message: string, fields: Record<string, unknown> = {}): void => {
  const line = JSON.stringify(redactor.value({ level, message, ...fields }))
  if (level === 'error') console.error(line)
  else console.warn(line)
}

/** Of work that no request waits for. */
export const logFailure = (error: unknown): void => {
  log('error', 'work in the background failed', { error: String(error) })
}
