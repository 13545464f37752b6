/**
 * How long the functions wait for the database, and how long the database works for them. Postgres must give up first: what was
 * answered with 503 must not be committed afterwards. One transaction ends, at worst, after
 *
 *      3 s  waiting for a connection of the gateway
 *   + 16 s  four statements of 4 s each; most transactions have two or three
 *   +  1 s  network
 *   = 20 s  the functions' patience
 *
 * The patience covers all tries: a try that failed is repeated if another one, at its worst, still fits. A transaction of
 * three statements takes at most 16 s, so there is a second try after a deadlock (1 s) or a lock timeout (3 s).
 *
 * A lock is given up before its statement is, so that the error says which of the two it was. A session that is idle in a
 * transaction is ended sooner still: whoever waits for its locks gets them and is not turned away.
 */
export const PATIENCE_MS = 20_000
export const CONNECTION_TIMEOUT_MS = 3_000
export const STATEMENT_TIMEOUT_MS = 4_000
export const LOCK_TIMEOUT_MS = 3_000
export const IDLE_IN_TRANSACTION_TIMEOUT_MS = 2_000
export const MAX_STATEMENTS = 4
const NETWORK_MS = 1_000

/** The longest that a transaction of so many statements can take. */
export const longestTryMs = (statements: number): number =>
  CONNECTION_TIMEOUT_MS + statements * STATEMENT_TIMEOUT_MS + NETWORK_MS
