/** NOTIFY channels. The payload of `JOBS_READY` is the type of a job that became ready. */
export const JOBS_READY = 'jobs_ready'

/**
 * A CTE for statements that make jobs ready: tells idle workers, once for each type in the CTE `ready`.
 * The statement must read from `notified`; Postgres skips a CTE that nobody reads.
 */
export const NOTIFY_READY = `
    notified as (
      select pg_notify('${JOBS_READY}', type)
      from ready
      group by type
    )`
