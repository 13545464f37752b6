/**
 * What a SQLSTATE says about a transaction that Postgres, or the way to it, could not serve at the moment. With one of these it
 * was certainly rolled back, or never begun. The reasons are told to clients.
 */
const ROLLED_BACK: Readonly<Record<string, string>> = {
  '08001': 'The database accepts no connection.',
  '08004': 'The database accepts no connection.',
  '25006': 'The database is read-only.',
  '25P03': 'The database ended the transaction, which was idle for too long.',
  '25P04': 'The database took too long.',
  '40001': 'The request conflicted with others.',
  '40P01': 'The request conflicted with others.',
  '53000': 'The database is out of resources.',
  '53100': "The database's disk is full.",
  '53200': 'The database is out of memory.',
  '53300': 'The database has no free connection.',
  '53400': 'The database has reached a configured limit.',
  '55P03': 'The database waited too long for a lock.',
  '57014': 'The database took too long.',
  '57P03': 'The database is starting or stopping.',
}

export const reasonOfRollback = (sqlstate: string | undefined): string | undefined =>
  sqlstate !== undefined && Object.hasOwn(ROLLED_BACK, sqlstate) ? ROLLED_BACK[sqlstate] : undefined

/** Of these, the same transaction may succeed if it is sent again at once. */
const TRANSIENT = new Set(['08001', '25P03', '40001', '40P01', '53300', '55P03', '57P03'])

export const isTransient = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && TRANSIENT.has(sqlstate)

/** The connection was lost: whether a transaction was committed is unknown. */
export const isConnectionLoss = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined &&
  (sqlstate.startsWith('08') || sqlstate.startsWith('57P')) &&
  reasonOfRollback(sqlstate) === undefined

export const DISK_FULL = '53100'

/** The SQLSTATE of an error of either driver; undefined if Postgres did not send it. */
export const sqlstateOf = (error: unknown): string | undefined => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Postgres rejected what was sent. It did not commit, and would reject the same again. */
export const isRefusal = (error: unknown): boolean => {
  const code = sqlstateOf(error)
  return code !== undefined && reasonOfRollback(code) === undefined && !isConnectionLoss(code)
}
