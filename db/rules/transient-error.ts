/**
 * SQLSTATEs after which the same statement may succeed if sent again, and after which it certainly did not
 * commit: serialization failure, deadlock, lock not available, too many connections, and a server that
 * refuses because it is starting or stopping.
 */
const TRANSIENT = new Set(['40001', '40P01', '55P03', '53300', '57P03'])

export const isTransient = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && TRANSIENT.has(sqlstate)

/** The connection is gone or could not be made: whether a statement committed is unknown. */
export const isConnectionLoss = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && (sqlstate.startsWith('08') || sqlstate.startsWith('57P'))
