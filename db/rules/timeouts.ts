/**
 * How long the functions wait for the database. Postgres must time out first: a request that got a 503 must not be
 * committed afterwards. The worst case of one transaction is
 *
 *      3 s  waiting for a connection in the gateway
 *   + 16 s  four statements of 4 s each; most transactions have two or three
 *   +  1 s  network
 *   = 20 s  the functions' patience
 *
 * The patience covers all tries: a failed try is repeated if another one still fits in the worst case. The lock timeout
 * is shorter than the statement timeout, so that the error tells the two apart. A session idle in a transaction ends even
 * sooner, so that transactions waiting for its locks succeed.
 */
export const PATIENCE_MS = 20_000
export const CONNECTION_TIMEOUT_MS = 3_000
export const STATEMENT_TIMEOUT_MS = 4_000
export const LOCK_TIMEOUT_MS = 3_000
export const IDLE_IN_TRANSACTION_TIMEOUT_MS = 2_000
export const MAX_STATEMENTS = 4
const NETWORK_MS = 1_000

/** The longest time that a transaction with this many statements can take. */
export const longestTryMs = (statements: number): number =>
  CONNECTION_TIMEOUT_MS + statements * STATEMENT_TIMEOUT_MS + NETWORK_MS
