import type { PostgresConnection } from '../../handler-api.ts'

/** A statement of `db/`, and the rows that it answers. */
type Statement<Row> = { readonly text: string; readonly values: readonly unknown[]; readonly row?: Row }

/** Runs a statement on a connection that the operator has named. */
export const ask = async <Row>(
  connection: PostgresConnection,
  { text, values }: Statement<Row>,
): Promise<Row[]> => (await connection.query<Row>(text, values)).rows
