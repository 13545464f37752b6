import type { PostgresConnection } from '../../handler-api.ts'

/** A statement for a database that the operator has named, and the type of its rows, which is never set. */
export type Statement<Row> = {
  readonly text: string
  readonly values: readonly unknown[]
  readonly row?: Row
}

export const ask = async <Row>(
  connection: PostgresConnection,
  { text, values }: Statement<Row>,
): Promise<Row[]> => (await connection.query<Row>(text, values)).rows
