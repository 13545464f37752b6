import { z } from 'zod'
import { CONNECTION_NAME, JobError } from '../handler-api.ts'

/** Databases that handlers may use, by the name that the operator gave them. */
export type NamedConnections = Readonly<Record<string, NamedConnection>>

/** Without `orgs` it is for the jobs of all organisations. */
export type NamedConnection = { readonly url: string; readonly orgs?: readonly string[] | undefined }

const SETTING = 'SMARTQUEUE_CONNECTIONS'
const SHAPE = 'must be a JSON object such as {"warehouse": "postgres://…"}'
const NAME_RULE = 'a name is a lower-case letter, followed by at most 62 of a-z, 0-9, "_" and "-"'
const ENTRY_RULE = 'must be a postgres:// URL, or {"url": "postgres://…", "orgs": ["<id>", …]}'

const connection = z.strictObject(
  {
    url: z
      .string('must be a postgres:// URL')
      .refine((text) => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text), 'must be a postgres:// URL'),
    orgs: z
      .array(z.guid('must be the id of an organisation').toLowerCase())
      .min(1, 'must name one at least; leave it out to admit all organisations')
      .optional(),
  },
  { error: ({ code }) => (code === 'invalid_type' ? ENTRY_RULE : undefined) },
)

/** Throws naming the entry that it cannot read. What stands in one is never repeated: it holds passwords. */
export const parseConnections = (text: string): NamedConnections => {
  const given = parseObject(text)
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, parseEntry(name, value)]))
}

const parseObject = (text: string): object => {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    // Not with the message of the parser, which quotes the text.
    throw new Error(`${SHAPE}, and is not JSON`)
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error(SHAPE)
  return given
}

const parseEntry = (name: string, value: unknown): NamedConnection => {
  if (!CONNECTION_NAME.test(name)) throw new Error(`"${name}": ${NAME_RULE}`)
  const parsed = connection.safeParse(typeof value === 'string' ? { url: value } : value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.length ? `${issue.path.join('.')} ` : ''
  throw new Error(`"${name}": ${field}${issue?.message}`)
}

/** The database as a job of this organisation reaches it. What belongs to others is as unknown as what is not there. */
export const findConnection = (connections: NamedConnections, name: string, orgId: string): string => {
  const admits = ({ orgs }: NamedConnection): boolean =>
    orgs === undefined || orgs.includes(orgId.toLowerCase())
  const usable = Object.entries(connections).filter(([, one]) => admits(one))
  const found = usable.find(([usableName]) => usableName === name)
  if (found) return found[1].url
  const advice =
    usable.length > 0
      ? `There are: ${usable.map(([usableName]) => usableName).join(', ')}.`
      : `There are none: the operator of SmartQueue names databases with ${SETTING}.`
  throw new JobError(
    'unknown_connection',
    `No database that this organisation may use is named "${name}". ${advice}`,
    {
      permanent: true,
    },
  )
}
