/** Choices for the end of a key, in days. */
export const ENDS = [
  { value: '7', label: 'after 7 days' },
  { value: '30', label: 'after 30 days' },
  { value: '90', label: 'after 90 days' },
  { value: '365', label: 'after a year' },
  { value: 'date', label: 'on a day…' },
  { value: '', label: 'only when revoked' },
]

const DAY_MS = 86_400_000

/** Undefined: no end. A date is in local time. */
export const endOf = (choice: string, date: string, nowMs: number): string | undefined => {
  if (choice === '') return undefined
  return new Date(choice === 'date' ? date : nowMs + Number(choice) * DAY_MS).toISOString()
}

/** What each scope is tried with, most telling first. */
const TRIALS: [scope: string, path: string, body?: string][] = [
  ['jobs:submit', '/jobs', '{"name":"hello","type":"http","payload":{"url":"https://example.com/"}}'],
  ['jobs:read', '/jobs'],
  ['webhooks:read', '/webhooks/sources'],
  ['org:read', '/orgs/me'],
  ['audit:read', '/orgs/me/audit'],
]

/** A command that shows whether a key works, for a terminal. Undefined: it can do nothing that changes nothing. */
export const commandFor = (
  { key, scopes }: { key: string; scopes: string[] },
  origin: string,
): string | undefined => {
  const trial = TRIALS.find(([scope]) => scopes.includes(scope))
  if (!trial) return undefined
  const [, path, body] = trial
  const request = `curl -s ${origin}${path} -H 'authorization: Bearer ${key}'`
  return body ? `${request} \\\n  -H 'content-type: application/json' \\\n  -d '${body}'` : request
}
