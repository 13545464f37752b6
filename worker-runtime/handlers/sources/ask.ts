import type { Query } from '../../../db/query.ts'
import type { PostgresConnection } from '../../handler-api.ts'

/** Runs a statement of `db/` on a connection that the operator has named. */
export const ask = async <Row>(connection: PostgresConnection, query: Query<Row>): Promise<Row[]> =>
  (await connection.query<Row>(query.text, query.values)).rows
