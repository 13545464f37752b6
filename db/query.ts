/** A statement as data. Each runtime runs it with its own driver: Neon's over HTTP, `pg` over TCP. */
export type Query<Row> = {
  /** Unique; `pg` prepares the statement under it. */
  readonly name: string
  readonly text: string
  readonly values: readonly QueryValue[]
  /** Set if it calls one function. The functions enter the organisation in the same statement (functions/database.ts). */
  readonly call?: Call
  /** Never set: carries the type of the rows from the builder to `Run`. */
  readonly row?: Row
}

/** A call of a function whose first argument is the organisation. Each of the others has its SQL type. */
export type Call = {
  readonly function: string
  /** What is selected of the rows, which are called `r`. */
  readonly columns: string
  readonly args: readonly (readonly [QueryValue, string])[]
}

export const callIn = <Row>(name: string, orgId: string | null, call: Call): Query<Row> => ({
  name,
  text: `select ${call.columns} from smartqueue.${call.function}($1::uuid${placeholders(call, 2)}) as r`,
  values: [orgId, ...call.args.map(([value]) => value)],
  call,
})

/** `entry` opens the organisation and returns it, so that the call can only run after it. */
export const enterAndCall = (entry: Query<unknown>, call: Call): Query<unknown> => ({
  name: `${entry.name} ${call.function}`,
  text: `
    select ${call.columns}
    from (${entry.text}) as entered (org_id)
    cross join lateral smartqueue.${call.function}(entered.org_id${placeholders(call, entry.values.length + 1)}) as r`,
  values: [...entry.values, ...call.args.map(([value]) => value)],
})

const placeholders = ({ args }: Call, first: number): string =>
  args.map(([, type], n) => `, $${first + n}::${type}`).join('')

export type QueryValue =
  | string
  | number
  | boolean
  | null
  | readonly (string | null)[]
  | readonly (number | null)[]
  | readonly boolean[]

/** A page of a list: what comes after an id, or the first page. */
export type Page = { after: string | null; limit: number }

/** A page of a list with the newest first: what comes before an id, or the first page. */
export type NewestFirst = { before: string | null; limit: number }

export type Run = <Row>(query: Query<Row>) => Promise<Row[]>
