/**
 * The beginning of a statement that writes the events of the transitions it makes, as one row for each organisation:
 * follow it with a `from` that gives org_id, job_id, state, attempt, reason and at, and with `group by org_id`.
 */
export const INSERT_EVENTS = `insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select
        org_id, array_agg(job_id), array_agg(state), array_agg(attempt), array_agg(reason), array_agg(at)`
