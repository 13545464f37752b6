/** A statement as data. Each runtime runs it with its own driver: Neon's over HTTP, `pg` over TCP. */
export type Query<Row> = {
  /** Unique; `pg` prepares the statement under it. */
  readonly name: string
  readonly text: string
  readonly values: readonly QueryValue[]
  /** The last value is the EntryProof of the caller, or null in a transaction that has entered. */
  readonly takesProof?: true
  /** Never set: carries the type of the rows from the builder to `Run`. */
  readonly row?: Row
}

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
