/**
 * SQLSTATEs of transactions that Postgres, or the connection to it, could not serve at the moment. With one
 * of these, the transaction was certainly rolled back or never began. The reasons are shown to clients.
 */
const ROLLED_BACK: Readonly<Record<string, string>> = {
  '08001': 'The database does not accept connections.',
  '08004': 'The database does not accept connections.',
  '25006': 'The database is read-only.',
  '25P03': 'The database terminated the transaction because it was idle for too long.',
  '25P04': 'The database took too long.',
  '40001': 'The request conflicted with others.',
  '40P01': 'The request conflicted with others.',
  '53000': 'The database is out of resources.',
  '53100': "The database's disk is full.",
  '53200': 'The database is out of memory.',
  '53300': 'The database has no free connections.',
  '53400': 'The database has reached a configured limit.',
  '55P03': 'The database waited too long for a lock.',
  '57014': 'The database took too long.',
  '57P03': 'The database is starting or stopping.',
}

export const reasonOfRollback = (sqlstate: string | undefined): string | undefined =>
  sqlstate !== undefined && Object.hasOwn(ROLLED_BACK, sqlstate) ? ROLLED_BACK[sqlstate] : undefined

/** With one of these, the same transaction may succeed if it is retried immediately. */
const TRANSIENT = new Set(['08001', '25P03', '40001', '40P01', '53300', '55P03', '57P03'])

export const isTransient = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && TRANSIENT.has(sqlstate)

/**
 * After the transaction had entered, a row that it refers to was deleted or its organisation was closed: a foreign key or a
 * policy rejects what it writes. The next try is refused entry, and that error gives the reason.
 */
const OVERTAKEN = new Set(['23503', '42501'])

export const isOvertaken = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && OVERTAKEN.has(sqlstate)

/** The connection was lost, so it is unknown whether the transaction was committed. */
export const isConnectionLoss = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined &&
  (sqlstate.startsWith('08') || sqlstate.startsWith('57P')) &&
  reasonOfRollback(sqlstate) === undefined

export const DISK_FULL = '53100'

/** The SQLSTATE of an error from either driver, or undefined if the error did not come from Postgres. */
export const sqlstateOf = (error: unknown): string | undefined => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Postgres rejected the statement. It did not commit, and would reject it again. */
export const isRefusal = (error: unknown): boolean => {
  const code = sqlstateOf(error)
  return code !== undefined && reasonOfRollback(code) === undefined && !isConnectionLoss(code)
}
