import type { Query } from '../query.ts'

/**
 * Ends the session of a job in a database that the operator has named, with the statement that it runs. By its name
 * too: behind a pooler the pid is not that of a process of this server.
 */
export const endJobSession = (pid: number, applicationName: string): Query<{ ended: boolean }> => ({
  name: 'end-job-session',
  text: `
    select pg_terminate_backend(pid) as ended
    from pg_stat_activity
    where pid = $1::int
      and application_name = $2::text
      and usename = current_user`,
  values: [pid, applicationName],
})
