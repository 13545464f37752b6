import type { Query } from '../query.ts'
import type { LeaseKey } from '../queue/exchange.ts'

/** What is null stays as it is. */
export type ProgressReport = LeaseKey & {
  progress: number | null
  note: string | null
  checkpoint: unknown
  /** Tells a checkpoint of `null` from none. */
  has_checkpoint: boolean
}

/** Takes `ProgressReport[]`, at most one for each job, as JSON. Reports of attempts that lost their lease vanish. */
export const saveProgress = (reportsJson: string): Query<never> => ({
  name: 'save-progress',
  text: `
    insert into smartqueue.job_progress as p (job_id, org_id, progress, note, checkpoint)
    select r.job_id, l.org_ids[n], r.progress, r.note, case when r.has_checkpoint then r.checkpoint end
    from jsonb_to_recordset($1::jsonb) as r (
      job_id uuid, token bigint, progress real, note text, checkpoint jsonb, has_checkpoint boolean
    )
    join smartqueue.leases l on l.token = r.token
    cross join lateral array_position(l.job_ids, r.job_id) as n
    where n is not null
    on conflict (job_id) do update
    set
      progress = coalesce(excluded.progress, p.progress),
      note = case when excluded.progress is null then p.note else excluded.note end,
      checkpoint = coalesce(excluded.checkpoint, p.checkpoint)`,
  values: [reportsJson],
})
