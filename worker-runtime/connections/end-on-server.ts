import pg from 'pg'

/**
 * Ends a session with the statement that it runs, by another session. By its name too: behind a pooler the pid is not that
 * of a process of this server. If it fails, the server finds out by itself once the statement has an answer.
 */
export const endOnServer = async (
  url: string,
  { pid, applicationName, timeoutMs }: { pid: number; applicationName: string; timeoutMs: number },
): Promise<void> => {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'smartqueue',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(
      `
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where pid = $1::int
      and application_name = $2::text
      and usename = current_user`,
      [pid, applicationName],
    )
  } catch {
  } finally {
    await client.end().catch(() => {})
  }
}
